/* native/src/runtime/scheduler/word_queue.hpp: words come out once each, in order, and a queue with
 * a word in it never looks empty.
 *
 * A producer pushes two words. Another pushes one and then looks, as if it were about to sleep. Two
 * consumers pop. The look must show a word that was pushed before and is not taken after it.
 *
 * Variants:
 *   NO_MARK     a consumer takes the stack without a mark in place of the list
 *   LIST_FIRST  looks_empty reads the list before the stack
 */
#define WORDS 3 /* 1 and 2 by the first producer, 3 by the second */
#define CPUS 4

#define inbox 0
#define list 1
#define link(word) (1 + (word)) /* words are 1 to WORDS */
#define CELLS 5                 /* 2 + WORDS */
#define kTaken 9

#include "tso.pml"

bool pushed[4];
byte taken[4];
byte last_of_first; /* the newest word of the first producer that came out */
byte through;
#ifdef NO_MARK
bool inside;
#endif

inline push(word) {
  do
  :: newest = load(inbox);
     store(link(word), newest);
     atomic { /* [queue-push] */
       fence();
       if
       :: memory[inbox] == newest -> memory[inbox] = word; pushed[word] = true; newest = 0; break
       :: else
       fi
     }
  od
}

proctype producer(byte me) {
  byte newest;
  push(1);
  push(2);
  through++
}

/* Both loads in one order, and the second only if the first shows nothing. */
inline look() {
#ifdef LIST_FIRST
  atomic { sees = load(list) };
#else
  atomic { sees = load(inbox) }; /* [queue-look-inbox] */
#endif
  if
  :: sees == 0 ->
#ifdef LIST_FIRST
     sees = load(inbox)
#else
     sees = load(list) /* [queue-look-list] */
#endif
  :: else
  fi
}

proctype consumer(byte me; byte tries) {
  byte first, older, newer, next;
  do
  :: atomic { tries > 0 -> tries-- };
#ifdef NO_MARK
     atomic { /* the lock alone, which no look sees */
       fence();
       if
       :: inside -> goto nothing
       :: else -> inside = true; first = memory[list]
       fi
     };
#else
     atomic { /* [queue-mark] */
       fence();
       first = memory[list];
       memory[list] = kTaken;
       if
       :: first == kTaken -> first = 0; goto nothing
       :: else
       fi
     };
#endif
     if
     :: first == 0 ->
        atomic { fence(); older = memory[inbox]; memory[inbox] = 0 }; /* [queue-take] */
        do
        :: older != 0 ->
           atomic { first = older; older = load(link(first)) };
           store(link(first), newer);
           newer = first
        :: else -> first = newer; newer = 0; break
        od
     :: else
     fi;
     if
     :: first != 0 ->
        atomic {
          next = load(link(first));
          assert(first > 2 || first > last_of_first);
          last_of_first = (first <= 2 -> first : last_of_first);
          taken[first]++;
          assert(taken[first] == 1)
        };
        store(link(first), 0)
     :: else
     fi;
     store(list, next); /* [queue-unmark] */
     atomic {
       next = 0;
#ifdef NO_MARK
       fence();
       inside = false;
#endif
       first = 0
     };
nothing:
     skip
  :: tries == 0 -> break
  od;
  through++
}

bool overlooked;

proctype sleeper(byte me) {
  byte sees, word, newest;
  bool before[4];
  push(3);
  atomic {
    word = 1;
    do
    :: word <= WORDS -> before[word] = pushed[word]; word++
    :: else -> word = 0; break
    od
  };
  look();
  atomic {
    word = 1;
    do
    :: word <= WORDS ->
       overlooked = overlooked || (sees == 0 && before[word] && taken[word] == 0);
       word++
    :: else -> word = 0; break
    od
  };
  assert(!overlooked);
  through++
}

init {
  atomic {
    run producer(0);
    run sleeper(1);
    run consumer(2, 2);
    run consumer(3, 1)
  }
}

bool each_once;

active proctype judge() {
  timeout;
  assert(through == 4);
  /* What is left is in the queue: on the stack or in the list. */
  each_once = (taken[1] + taken[2] + taken[3] == WORDS) || memory[inbox] != 0 || memory[list] != 0;
  assert(each_once)
}
