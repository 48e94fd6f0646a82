/* native/src/runtime/scheduler/yield_queue.hpp: the biased lock excludes.
 *
 * The owner and two thieves enter and leave. No two are ever inside at once, each one inside sees
 * what the previous ones did, and the owner gets in each time.
 *
 * Variants:
 *   MEMBARRIER         light fences free, heavy ones membarrier; else both full fences
 *   NO_LIGHT_FENCE     the owner's fence is missing
 *   MEMBARRIER, NO_MEMBARRIER   the thieves' heavy fence is only a full one
 *   NO_OWNER_LOOK      the owner does not look for a thief
 */
#define ENTRIES 3 /* of the owner */
#define TRIES 2   /* of each thief */
#define CPUS 3

#define owner_inside 0
#define thief_inside 1
#define contents 2
#define CELLS 3

#include "tso.pml"

byte inside;  /* how many are inside */
byte entered; /* how often in total */
byte through;

inline go_in_and_out() {
  atomic { inside++; entered++; assert(inside == 1) };
  seen = load(contents);
  store(contents, seen + 1);
  atomic { inside--; seen = 0 }
}

proctype owner(byte me) {
  byte entries, seen;
  do
  :: atomic { entries < ENTRIES -> entries++ };
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
  assert(memory[contents] == entered) /* nobody overwrote a value it had not seen */
}
