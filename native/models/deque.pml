/* native/include/atoll/runtime/deque.hpp: each word is taken once.
 *
 * One owner pushes the words 1 to WORDS and pops them in any order; two thieves steal. The buffer
 * has CAPACITY slots that are reused; if the deque would have to grow, the owner does not push.
 * When nothing can move any more, each word was taken exactly once or is still there.
 *
 * Variants:
 *   NO_POP_FENCE       lowering bottom and looking at top are a plain store and a plain load
 *   NO_LAST_CAS        the owner just takes the last word
 *   BOTTOM_FIRST       a thief reads bottom, then top
 *   SLOT_AFTER_CAS     a thief moves top, then reads the slot
 */
#define WORDS 4
#define POPS 3
#define STEALS 2 /* of each thief */
#define CAPACITY 2
#define CPUS 3

#define top 0
#define bottom 1
#define slot(at) (2 + (at) % CAPACITY)
#define CELLS 4 /* 2 + CAPACITY */

#include "tso.pml"

byte taken[WORDS + 1]; /* how often, by word; 0 is the word of a slot never written */
byte pushed;
byte through;

/* The owner takes `last`, or nothing, with the same CAS as the thieves. */
#ifdef NO_LAST_CAS
#define top_is(expected) true
#else
#define top_is(expected) (memory[top] == (expected))
#endif

inline take_last() {
  atomic { /* [pop-cas] */
    fence();
    if
    :: top_is(last) -> memory[top] = last + 1; taken[memory[slot(last)]]++
    :: else
    fi
  }
}

proctype owner(byte me) {
  byte pops, last, seen;
  do
  :: atomic {
       pushed < WORDS && load(bottom) - load(top) < CAPACITY -> pushed++;
       last = load(bottom)
     };
     store(slot(last), pushed);
     atomic { store(bottom, last + 1); last = 0 } /* [push-publish] */
  :: pops < POPS ->
     pops++;
     atomic { seen = load(top); last = load(bottom) }; /* [pop-look] */
     if
     :: seen >= last -> skip /* empty: nothing for bottom - 1 */
     :: seen + 1 == last -> last--; take_last()
     :: seen + 1 < last ->
        last--;
        store(bottom, last); /* [pop-lower] */
#ifndef NO_POP_FENCE
        fence(); /* [pop-fence] */
#endif
        seen = load(top); /* [pop-top] */
        if
        :: atomic { seen < last -> taken[load(slot(last))]++ }
        :: else ->
           if
           :: seen == last -> take_last()
           :: else
           fi;
           store(bottom, last + 1) /* [pop-restore] */
        fi
     fi;
     atomic { seen = 0; last = 0 }
  :: pops == POPS && (pushed == WORDS || load(bottom) - load(top) >= CAPACITY) -> break
  od;
  through++
}

proctype thief(byte me) {
  byte steals, up, low, word;
  do
  :: steals < STEALS ->
     steals++;
#ifdef BOTTOM_FIRST
     low = load(bottom);
     up = load(top);
#else
     up = load(top);     /* [steal-top] */
     low = load(bottom); /* [steal-bottom] */
#endif
     if
     :: up < low ->
#ifndef SLOT_AFTER_CAS
        word = load(slot(up));
#endif
        if
        :: atomic { fence() && memory[top] == up -> memory[top] = up + 1 }; /* [steal-cas] */
#ifdef SLOT_AFTER_CAS
           word = load(slot(up));
#endif
           taken[word]++
        :: atomic { fence() && memory[top] != up }
        fi
     :: else
     fi;
     atomic { up = 0; low = 0; word = 0 }
  :: else -> break
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

#define at_place(place, word) \
  (memory[top] + place < memory[bottom] && memory[slot(memory[top] + place)] == (word))
#define once(word) \
  (taken[word] + at_place(0, word) + at_place(1, word) == ((word) <= pushed -> 1 : 0))

bool each_once;

active proctype judge() {
  timeout;
  assert(through == 3);
  each_once = taken[0] == 0 && once(1) && once(2) && once(3) && once(4);
  assert(each_once)
}
