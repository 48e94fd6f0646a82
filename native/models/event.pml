/* native/include/atoll/runtime/event.hpp: one word that is a flag or a list of waiters, and a table.
 *
 * Two waiters on the list and one in the table, whose wait may end early, meet a thread that sets
 * the event, resets it at once, and sets it again. Each wait ends, none for a set that was over
 * before it began, and nobody touches the event once every wait for the last set has returned, or a
 * waiter's frame once that is resumed. Every access to the word is a locked instruction, so stores
 * need no queues here.
 *
 * Variants:
 *   BIT_WITHOUT_LOCK   a waiter sets the table's bit before it has the lock
 *   FLAG_FIRST         `set` raises the flag, and takes the waiters in a second step
 *   NEXT_AFTER_RESUME  the list is read after its first waiter is resumed
 */
#define WAITERS 3
#define SETS 2

bool flag, table; /* the word */
byte head;        /* and its list: a waiter + 1 */
byte next[WAITERS];
bool frame[WAITERS], resumed[WAITERS], queued[WAITERS];
bool locked; /* the table's queue */
byte sets, released;
bool gone;

inline touch() { assert(!gone) }
inline lock() { atomic { !locked -> locked = true } }
inline leave() {
  atomic { frame[me] = false; released++; gone = (released == WAITERS && sets == SETS) }
}

proctype on_list(byte me) {
  byte begun, seen;
  bool was;
  atomic { touch(); begun = sets; was = flag };
  frame[me] = true;
again:
  atomic { touch(); if :: flag -> goto over :: else -> seen = head fi };
  next[me] = seen;
  atomic { /* [wait-join] */
    touch();
    if
    :: !flag && head == seen -> head = me + 1
    :: else -> goto again
    fi
  };
  resumed[me];
over:
  assert(was || sets > begun); /* not for a set that was over */
  leave()
}

proctype in_table(byte me) {
  byte begun, joined;
  bool was, late;
  atomic { touch(); begun = sets; was = flag };
  frame[me] = true;
#ifdef BIT_WITHOUT_LOCK
  atomic { touch(); if :: flag -> goto over :: else -> table = true; joined = sets fi };
#endif
  lock();
#ifndef BIT_WITHOUT_LOCK
  atomic { touch(); if :: flag -> locked = false; goto over :: else -> table = true; joined = sets fi };
#endif
  queued[me] = true; /* [table-join] */
  locked = false;
  if
  :: resumed[me]
  :: lock(); /* the deadline is over */
     late = queued[me];
     assert(!late || sets == joined); /* no set has left it in the queue */
     queued[me] = false;
     locked = false;
     if
     :: late -> goto early
     :: else -> resumed[me]
     fi
  fi;
over:
  assert(was || sets > begun);
early:
  leave()
}

inline resume_list() {
  do
  :: taken != 0 ->
     one = taken - 1;
     assert(frame[one]);
#ifdef NEXT_AFTER_RESUME
     resumed[one] = true;
     assert(frame[one]);
     taken = next[one]
#else
     taken = next[one]; /* [set-next] */
     resumed[one] = true
#endif
  :: else -> break
  od
}

active proctype setter() {
  byte taken, one, at;
  bool woken;
  do
  :: sets == SETS -> break
  :: else ->
     atomic {
       touch();
       if
       :: table -> goto slow
       :: else /* [set-take] */
#ifdef FLAG_FIRST
          -> flag = true; sets++
#else
          -> taken = head; head = 0; flag = true; sets++
#endif
       fi
     };
#ifdef FLAG_FIRST
     atomic { touch(); taken = head; head = 0 };
#endif
     resume_list();
     goto end_set;
slow:
     lock();
     atomic { touch(); taken = head; head = 0; table = false; flag = true; sets++ }; /* [table-take] */
     atomic { woken = queued[WAITERS - 1]; queued[WAITERS - 1] = false };
     locked = false;
     resume_list();
     if
     :: woken -> resumed[WAITERS - 1] = true
     :: else
     fi;
end_set:
     woken = false;
     if
     :: sets < SETS -> atomic { touch(); flag = false }
     :: else
     fi
  od
}

init {
  atomic {
    run on_list(0);
    run on_list(1);
    run in_table(2)
  }
}

active proctype judge() {
  timeout;
  assert(released == WAITERS)
}
