/* native/include/atoll/runtime/deque.hpp: each word is taken once, and none is overlooked.
 *
 * One owner pushes the words 1 to WORDS, pops and exposes in any order; two thieves steal, and force
 * where all words are private. The buffer has CAPACITY slots that are reused; if the deque would
 * have to grow, the owner does not push. When nothing can move any more, each word was taken exactly
 * once or is still there.
 *
 * Variants:
 *   MEMBARRIER         light fences free, heavy ones membarrier; else both full fences
 *   SLEEPER            in place of the second thief, a worker that is about to sleep
 *   NO_LIGHT_FENCE     lowering bottom and looking at the split are a plain store and a plain load
 *   MEMBARRIER, NO_MEMBARRIER   the heavy fence of force is only a full one
 *   NO_FORCE_LOCK      two thieves may force at once
 *   NO_CLOSE           a thief that forces does not close the public part
 *   SPLIT_FALLS        the owner takes back one public word, and lowers the split
 *   SMALL              two slots instead of three: they are reused more, and no two words are public
 *   SMALL, SLOT_AFTER_CAS  a thief moves top, then reads the slot
 *   SLEEPER, TOP_FIRST  the owner shows the new top before the new bottom
 *   SLEEPER, PUBLIC_ONLY  the sleeper looks at public words only
 */
#define WORDS 3
#define POPS 2
#define EXPOSES 1
#define STEALS 2 /* of the first thief; one of the second */
#ifdef SMALL
#define CAPACITY 2
#else
#define CAPACITY 3
#endif
#define CPUS 3

#define ends 0
#define bottom 1
#define forced 2
#define idle 3
#define slot(at) (4 + (at) % CAPACITY)
#define CELLS 7 /* 4 + CAPACITY */

/* The word of top and split. */
#define ENDS(top, count, closed) ((top) * 16 + (count) * 2 + (closed))
#define TOP(word) ((word) >> 4)
#define COUNT(word) (((word) >> 1) & 7)
#define CLOSED(word) ((word) & 1)
#define SPLIT(word) (TOP(word) + COUNT(word))
#define FIRST 1 /* the first index, so that one less is a number, too */

#include "tso.pml"

byte taken[WORDS + 1]; /* how often, by word; 0 is the word of a slot never written */
byte pushed;
byte through;
bool sleeps, woken;

/* Each step is one load, one store or one locked instruction, followed by what the process decides
 * by itself. Local variables are set back to 0 when they are not needed.
 *
 * Sets `done` if the word of the ends was `seen`; then it is `next`. Part of an atomic step. */
inline cas_ends() {
  fence();
  done = memory[ends] == seen;
  memory[ends] = (done -> next : memory[ends]);
  next = 0
}

inline open(round) {
  atomic {
    seen = load(ends);
    next = ENDS(TOP(seen), (load(bottom) - TOP(seen) + round) / 2, 0);
    done = COUNT(seen) > 0 || next == seen
  };
  atomic { /* [expose-cas] */
    if
    :: done -> next = 0
    :: !done -> cas_ends()
    fi;
    done = false;
    seen = 0
  }
}

/* The public part is closed. */
inline retake() {
  do
  :: atomic { moved + 1 < COUNT(seen) -> word = load(slot(TOP(seen) + moved)) };
     atomic { store(slot(SPLIT(seen) + moved), word); moved++; word = 0 }
  :: atomic { moved + 1 >= COUNT(seen) -> moved = 0; break }
  od;
#ifdef TOP_FIRST
  store(ends, ENDS(SPLIT(seen), 0, 0));
  store(bottom, SPLIT(seen) + COUNT(seen) - 1)
#else
  store(bottom, SPLIT(seen) + COUNT(seen) - 1); /* [retake-bottom] */
  store(ends, ENDS(SPLIT(seen), 0, 0))          /* [retake-open] */
#endif
}

proctype owner(byte me) {
  byte pops, exposes, last, seen, next, moved, word;
  bool done;
  do
  :: atomic {
       pushed < WORDS && load(bottom) - TOP(load(ends)) < CAPACITY -> pushed++;
       last = load(bottom)
     };
     store(slot(last), pushed);
     atomic { store(bottom, last + 1); last = 0 } /* [push-publish] */
     light_fence();
     woken = woken || load(idle) == 1
  :: atomic { exposes < EXPOSES -> exposes++ };
     open(1)
  :: atomic { pops < POPS -> pops++; last = load(bottom) - 1 };
claim:
     store(bottom, last); /* [pop-lower] */
     light_fence();       /* [pop-fence] */
     atomic {             /* [pop-look] */
       seen = load(ends);
       if
       :: !CLOSED(seen) && last >= SPLIT(seen) ->
          taken[load(slot(last))]++;
          goto popped
       :: else
       fi
     };
public:
     store(bottom, last + 1); /* [pop-restore] */
     atomic {
       seen = load(ends);
       if
       :: CLOSED(seen)
       :: !CLOSED(seen) && SPLIT(seen) != last + 1 -> goto claim
       :: !CLOSED(seen) && SPLIT(seen) == last + 1 && COUNT(seen) == 0 -> goto popped
       :: !CLOSED(seen) && SPLIT(seen) == last + 1 && COUNT(seen) > 0 -> goto back
       fi
     };
     open(0);
     goto public;
back:
     atomic { /* [retake-cas] */
#ifdef SPLIT_FALLS
       next = ENDS(TOP(seen), COUNT(seen) - 1, 0);
#else
       next = seen + 1;
#endif
       cas_ends();
       if
       :: done -> done = false; taken[load(slot(last))]++
       :: else -> goto public
       fi
     };
#ifdef SPLIT_FALLS
     store(bottom, last);
#else
     retake();
#endif
popped:
     atomic { seen = 0; last = 0 }
  :: atomic {
       pops == POPS && exposes == EXPOSES &&
       (pushed == WORDS || load(bottom) - TOP(load(ends)) >= CAPACITY) -> through++; break
     }
  od
}

proctype thief(byte me; byte steals) {
  byte seen, next, count, word, second, at_cpu;
  bool done;
  do
  :: atomic { /* [steal-look] */
       steals > 0 -> steals--;
       seen = load(ends);
       if
       :: CLOSED(seen) -> goto over
       :: !CLOSED(seen) && COUNT(seen) > 0 -> count = 1
#ifndef SLOT_AFTER_CAS
       :: !CLOSED(seen) && COUNT(seen) > 1 -> count = 2
#endif
       :: !CLOSED(seen) && COUNT(seen) == 0 -> goto force
       fi
     };
#ifndef SLOT_AFTER_CAS
     word = load(slot(TOP(seen)));
     if
     :: atomic { count == 2 -> second = load(slot(TOP(seen) + 1)) }
     :: count == 1
     fi;
#endif
     atomic { /* [steal-cas] */
       next = ENDS(TOP(seen) + count, COUNT(seen) - count, 0);
       cas_ends();
#ifndef SLOT_AFTER_CAS
       if
       :: done -> taken[word]++
       :: else -> goto over
       fi;
       if
       :: count == 2 -> taken[second]++
       :: else
       fi;
       goto over
#endif
     };
#ifdef SLOT_AFTER_CAS
     atomic {
       if
       :: done -> taken[load(slot(TOP(seen)))]++
       :: else
       fi;
       goto over
     };
#endif
force:
     atomic {
       if
       :: load(bottom) <= TOP(seen) -> goto over
       :: else
       fi
     };
     atomic { /* [force-lock] */
       fence();
#ifndef NO_FORCE_LOCK
       if
       :: memory[forced] == 1 -> goto over
       :: else
       fi;
#endif
       memory[forced] = 1
     };
#ifndef NO_CLOSE
     atomic { /* [force-close] */
       next = seen + 1;
       cas_ends();
       if
       :: done -> done = false; seen++
       :: else -> goto unlock
       fi
     };
#endif
     heavy_fence(); /* [force-fence] */
     atomic {       /* [force-look] */
       next = load(bottom);
       next = ENDS(TOP(seen), (next > TOP(seen) -> (next - TOP(seen) + 1) / 2 : 0), 0)
     };
     atomic { cas_ends() }; /* [force-open] */
unlock:
     store(forced, 0);
over:
     atomic { seen = 0; count = 0; word = 0; second = 0; done = false }
  :: atomic { steals == 0 -> through++; break }
  od
}

/* From Parking::prepare to its second look. */
proctype sleeper(byte me) {
  byte seen, at_cpu;
  atomic { fence(); memory[idle] = 1 };
  heavy_fence();
  seen = load(ends);
#ifdef PUBLIC_ONLY
  sleeps = COUNT(seen) == 0;
#else
  sleeps = load(bottom) <= TOP(seen);
#endif
  through++
}

init {
  atomic {
    memory[ends] = ENDS(FIRST, 0, 0);
    memory[bottom] = FIRST;
    run owner(0);
    run thief(1, STEALS);
#ifdef SLEEPER
    run sleeper(2)
#else
    run thief(2, 1)
#endif
  }
}

#define at_place(place, word)                    \
  (TOP(memory[ends]) + place < memory[bottom] && \
   memory[slot(TOP(memory[ends]) + place)] == (word))
#ifdef SMALL
#define there(word) (at_place(0, word) + at_place(1, word))
#else
#define there(word) (at_place(0, word) + at_place(1, word) + at_place(2, word))
#endif
#define once(word) (taken[word] + there(word) == ((word) <= pushed -> 1 : 0))

bool each_once, overlooked;

active proctype judge() {
  timeout;
  assert(through == 3);
  assert(!CLOSED(memory[ends]));
  each_once = taken[0] == 0 && once(1) && once(2) && once(3);
  assert(each_once);
  overlooked = sleeps && !woken && TOP(memory[ends]) < memory[bottom];
  assert(!overlooked)
}
