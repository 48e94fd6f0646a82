/* native/src/runtime/scheduler/yield_queue.hpp: the biased lock excludes.
 *
 * The owner and two thieves enter and leave. No two are ever inside at once, each one inside sees
 * what the previous ones did, and the owner gets in each time. The owner fills the place of the
 * next word without the lock, and all take it inside: no word is lost, and none is taken twice.
 *
 * Variants:
 *   MEMBARRIER         light fences free, heavy ones membarrier; else both full fences
 *   NO_LIGHT_FENCE     the owner's fence is missing
 *   MEMBARRIER, NO_MEMBARRIER   the thieves' heavy fence is only a full one
 *   NO_OWNER_LOOK      the owner does not look for a thief
 *   PUT_BLINDLY        the owner fills the place without a look whether it is empty
 *   TAKE_OUTSIDE       the owner takes the next word without the lock
 */
#define ENTRIES 3 /* of the owner */
#define TRIES 2   /* of each thief */
#define CPUS 3

#define owner_inside 0
#define thief_inside 1
#define contents 2
#define next 3
#define CELLS 4

#include "tso.pml"

byte inside;  /* how many are inside */
byte entered; /* how often in total */
byte through;
byte puts;
byte taken[ENTRIES + 1]; /* how often each word */

inline put_next() { /* [next-put] */
#ifdef PUT_BLINDLY
  atomic { puts++; store(next, puts) }
#else
  if
  :: load(next) != 0
  :: load(next) == 0 -> atomic { puts++; store(next, puts) }
  fi
#endif
}

inline take_next() { /* [next-steal] */
  seen = load(next);
  if
  :: seen == 0
  :: seen != 0 -> store(next, 0); atomic { taken[seen]++; assert(taken[seen] == 1) }
  fi;
  seen = 0
}

inline go_in_and_out() {
  atomic { inside++; entered++; assert(inside == 1) };
  seen = load(contents);
  store(contents, seen + 1);
  if
  :: skip
#ifdef TAKE_OUTSIDE
  :: me != 0 -> take_next()
#else
  :: take_next()
#endif
  fi;
  atomic { inside--; seen = 0 }
}

proctype owner(byte me) {
  byte entries, seen;
  do
  :: atomic { entries < ENTRIES -> entries++ };
     put_next();
#ifdef TAKE_OUTSIDE
     take_next();
#endif
again:
     store(owner_inside, 1); /* [owner-store] */
     light_fence();          /* [owner-fence] */
#ifndef NO_OWNER_LOOK
     if /* [owner-look] */
     :: load(thief_inside) == 0
     :: load(thief_inside) == 1 ->
        store(owner_inside, 0); /* [owner-give-way] */
        load(thief_inside) == 0;
        goto again
     fi;
#endif
     go_in_and_out();
     store(owner_inside, 0)
  :: entries == ENTRIES -> break
  od;
  through++
}

proctype thief(byte me) {
  byte tries, seen, at_cpu;
  do
  :: atomic { tries < TRIES -> tries++ };
     if
     :: load(owner_inside) == 1
     :: load(owner_inside) == 0 ->
        if /* [thief-store] */
        :: atomic { fence() && memory[thief_inside] == 1 }
        :: atomic { fence() && memory[thief_inside] == 0 -> memory[thief_inside] = 1 };
           heavy_fence(); /* [thief-fence] */
           if             /* [thief-look] */
           :: load(owner_inside) == 1
           :: load(owner_inside) == 0 -> go_in_and_out()
           fi;
           store(thief_inside, 0)
        fi
     fi
  :: tries == TRIES -> break
  od;
  through++
}

init {
  atomic {
    run owner(0);
    run thief(1);
    run thief(2)
  }
}

active proctype judge() {
  timeout;
  assert(through == 3);
  assert(memory[contents] == entered); /* nobody overwrote a value it had not seen */
  assert(taken[1] + taken[2] + taken[3] + (memory[next] != 0) == puts)
}
