/* native/src/runtime/scheduler/domain.hpp: no queue with words is overlooked for ever.
 *
 * A domain's queue has a bit that says that it may hold words. Two producers push one word each. A
 * worker finds the queue empty, or a word, with which it stays for ever; it may also leave the
 * domain and look no more. Another worker takes all that it sees, and sleeps when it sees nothing.
 * When nothing can move any more, it must not sleep while a word is there.
 *
 * Between threads there are only locked instructions and looks, so there are no store buffers. The
 * fences between going to sleep and looking are parking.pml's.
 *
 * Variants:
 *   BIT_FIRST  a producer sets the bit before it pushes
 *   NO_LOOK    who has cleared the bit does not look at the queue again
 *   NO_WAKE    who has set it again wakes nobody
 */
byte words;   /* in the queue */
bool waiting; /* the bit */
bool asleep;  /* the second worker, or it is about to look for the last time */
byte through;

/* Parking::notify_allowed. */
inline notify() {
  atomic {
    if
    :: asleep -> asleep = false
    :: else
    fi
  }
}

proctype producer() {
#ifdef BIT_FIRST
  waiting = true;
  words++;
#else
  words++;        /* [waiting-push] */
  waiting = true; /* [waiting-set] */
#endif
  notify();
  through++
}

/* Domains::pop. */
inline visit() {
  got = false;
  if
  :: waiting ->
     if
     :: atomic { words > 0 -> words--; got = true }
     :: words == 0 ->
        waiting = false; /* [waiting-clear] */
#ifndef NO_LOOK
        if
        :: words > 0 ->     /* [waiting-look] */
           waiting = true; /* [waiting-again] */
#ifndef NO_WAKE
           notify() /* [waiting-wake] */
#endif
        :: else
        fi
#endif
     fi
  :: else
  fi
}

proctype passer_by() {
  bool got;
  visit();
  if
  :: !got -> visit()
  :: true
  fi;
  through++
}

proctype sleeper() {
  bool got;
  do
  :: visit();
     if
     :: got
     :: else ->
        asleep = true;
        /* Domains::has_words_for */
        if
        :: waiting && words > 0 -> asleep = false
        :: else ->
end:       !asleep
        fi
     fi
  od
}

init {
  atomic {
    run producer();
    run producer();
    run passer_by();
    run sleeper()
  }
}

bool lost_wake_up;

active proctype judge() {
  timeout;
  assert(through == 3);
  lost_wake_up = asleep && words > 0;
  assert(!lost_wake_up)
}
