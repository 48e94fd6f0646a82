/* native/src/runtime/scheduler/parking.hpp: no wake-up is lost.
 *
 * WORKERS look for work and sleep. Each producer publishes one piece of work in its own queue (a
 * deque's bottom: an ordinary store), then notifies. A worker that took a piece returns for
 * more, or stays with it forever. When nothing can move any more, work must not lie in a queue
 * while a worker that may run it sleeps.
 *
 * Variants (tools/check_models.py says which must pass and which must fail):
 *   MEMBARRIER                   light fences free, heavy ones membarrier; else both full fences
 *   NO_LIGHT_FENCE               the producer's fence is missing
 *   NO_HEAVY_FENCE               the sleeper's
 *   MEMBARRIER, NO_MEMBARRIER    light fences free, heavy ones only full fences
 *   NO_SECOND_LOOK               commit right after prepare
 *   NO_LAST_SEARCHER             end_search wakes nobody
 *   LATE_COUNT                   the waker lets the worker run before it changes the counts
 *   RESTRICTED                   work 1 is for worker 1 alone, and notify_allowed
 *   RESTRICTED, PLAIN_NOTIFY     ... but notify
 *   RESTRICTED, MIXED            a producer publishes work 1, then 0, in one deque; between them it
 *                                moves work 1 to its domain's queue; worker 1 may never look
 *   RESTRICTED, MIXED, NO_MOVE   ... does not move it
 *   LEVELS                       one producer; both workers are counted in one chiplet first
 *   LEVELS, LATE_RAISE           ... the word is raised after the chiplet's count
 *   STAND_IN                     a thread takes worker 0's place while that sleeps, and gives it back;
 *                                one producer is worker 1, the other one is no worker
 *   STAND_IN, NO_LAST_SEARCHER   ... on whose search the thread that is no worker relies in vain
 *   STAND_IN, ALONE              ... there is no worker 1
 *   STAND_IN, NO_RETURN_LOOK     ... without the second look
 *   STAND_IN, NO_RETURN_FENCE    ... with no fence before it
 *   STAND_IN, MEMBARRIER, ONLY_OWN_FENCE  ... with a fence of its own, though a worker is awake
 *   STAND_IN, BATCH              ... worker 1 offers work 0, which is for worker 0 alone, while it is
 *                                still a searcher (Worker::keep_stolen)
 *   STAND_IN, BATCH, SEARCHERS_SLEEP  ... and a searcher counts as asleep
 *   STAND_IN, LATE_STATE         ... nobody can call the worker before the look is over
 *   STAND_IN, ALONE, MEMBARRIER, LIGHT_OUTSIDE   ... the thread that is no worker has a light fence
 *   LAST_LOOK                    the last searcher wakes nobody if all others sleep and there is no work
 *                                1, which a thread that is no worker publishes; both workers are
 *                                busy first, and one of them may publish work 0
 *   LAST_LOOK, MEMBARRIER
 *   LAST_LOOK, NO_LOOK           ... it does not look
 *   LAST_LOOK, MEMBARRIER, LIGHT_OUTSIDE   ... the thread that is no worker has a light fence
 *   LAST_LOOK, BUSY              ... a third worker publishes work 0 and stays busy
 *   LAST_LOOK, BUSY, BUSY_SLEEPS ... and counts as asleep
 *   TREE                         one producer with work 0 for worker 0 and work 1 for worker 1 wakes
 *                                both as a tree; a worker that has committed sleeps in the kernel; a
 *                                second producer may wake worker 1 at the same time
 *   TREE, MEMBARRIER
 *   TREE, NO_LIGHT_FENCE         ... its fences are missing
 *   TREE, NO_CHILD               ... a worker that is up wakes nobody
 *   TREE, LATE_LINK              ... the first may run before the second is linked to it
 *   TREE, PARENT_FIRST           ... may run before the second may
 */
#define WORKERS 2
#define PRODUCERS 2
#define CPUS 4 /* WORKERS + PRODUCERS */

#define work(number) (number)
#define state(worker) (PRODUCERS + (worker))
#define below 4 /* work 1 is in the deque in which work 0 is, or will be */
#define CELLS 5 /* PRODUCERS + WORKERS + 1 */

#include "tso.pml"

/* What the last searcher leaves, if anything: some work that any worker may run. */
#ifdef TREE
#define ANYTHING 2
#else
#define ANYTHING 0
#endif

/* The states of a worker. */
#define awake 0
#define asleep 1
#define claimed 2
#define notified 3
#define parked 4
#define borrowed 5
#define leaving 6
#define called 7

#define sleeping(now) ((now) == asleep || (now) == parked)
#define claimable(now) (sleeping(now) || (now) == leaving)

#if defined(TREE)
#define may_run(worker, number) ((number) == (worker) || (number) == ANYTHING)
#elif defined(RESTRICTED)
#define may_run(worker, number) ((number) == 0 || (worker) == 1)
#else
#define may_run(worker, number) true
#endif

/* As a thief sees it, who looks at the lowest word of a deque only. */
#define in_sight(number) (load(work(number)) == 1 && ((number) == 1 || load(below) == 0))

/* The word. Only locked instructions change it, so it is never queued, and one load reads both. */
byte sleepers, searchers;

byte producers_done;
#ifdef STAND_IN
bool stood_in;
#else
bool stood_in = true;
#endif

#ifdef LAST_LOOK
#if defined(BUSY) && !defined(BUSY_SLEEPS)
#define OTHERS WORKERS
#else
#define OTHERS (WORKERS - 1)
#endif
#ifdef BUSY
bool published = true; /* work 0 */
#else
bool published;
#endif
#endif

#define SLEEPER 1
#define SEARCHER 2

/* Parking::change, from one kind to another; 0 is neither. */
#ifndef LEVELS
inline change(from, to) {
  atomic {
    fence();
    assert(from != SLEEPER || sleepers > 0);
    assert(from != SEARCHER || searchers > 0);
    sleepers = sleepers - (from == SLEEPER) + (to == SLEEPER);
    searchers = searchers - (from == SEARCHER) + (to == SEARCHER)
  }
}
#else
/* The counts of the chiplet. Each process has `seen`, what it last read of them, and `shown`, by how
 * much it has raised the word. */
typedef Counts { byte sleepers, searchers };
Counts chiplet;

#define leaves_0(counts, to) \
  (to == SLEEPER && counts.sleepers == 0 || to == SEARCHER && counts.searchers == 0)
#define comes_to_0(counts, from) \
  (from == SLEEPER && counts.sleepers == 1 || from == SEARCHER && counts.searchers == 1)

inline raise(to, times) {
  sleepers = sleepers + (times) * (to == SLEEPER);
  searchers = searchers + (times) * (to == SEARCHER)
}

inline lower(from) {
  assert(from != SLEEPER || sleepers > 0);
  assert(from != SEARCHER || searchers > 0);
  sleepers = sleepers - (from == SLEEPER);
  searchers = searchers - (from == SEARCHER)
}

inline change(from, to) {
  atomic { seen.sleepers = chiplet.sleepers; seen.searchers = chiplet.searchers };
  do
  :: atomic {
#if !defined(LATE_RAISE)
       if /* [chiplet-raise] */
       :: leaves_0(seen, to) && !shown -> fence(); raise(to, 1); shown = true
       :: !leaves_0(seen, to) && shown -> fence(); lower(to); shown = false
       :: else
       fi
#else
       skip
#endif
     };
     atomic { /* [chiplet-count] */
       fence();
       if
       :: chiplet.sleepers == seen.sleepers && chiplet.searchers == seen.searchers ->
          chiplet.sleepers = chiplet.sleepers - (from == SLEEPER) + (to == SLEEPER);
          chiplet.searchers = chiplet.searchers - (from == SEARCHER) + (to == SEARCHER);
          break
       :: else ->
          seen.sleepers = chiplet.sleepers;
          seen.searchers = chiplet.searchers
       fi
     }
  od;
#ifdef LATE_RAISE
  atomic {
    fence();
    if
    :: leaves_0(seen, to) -> raise(to, 1)
    :: else
    fi
  };
#endif
  atomic { /* [chiplet-lower] */
    if
    :: comes_to_0(seen, from) -> fence(); lower(from)
    :: else
    fi;
    shown = false;
    seen.sleepers = 0;
    seen.searchers = 0
  }
}
#endif

/* Each step below is one load, one store or one locked instruction, followed by the worker's local
 * decision. Local variables are set back to 0 when they are not needed. */

#ifdef TREE
/* futex_wait: sleeps if the word is not `notified`, until a futex_wake. The links of the tree are
 * plain memory: the store of `notified` releases them, and stores leave a processor in order. */
bool in_kernel[WORKERS];
bool wakes_other[WORKERS];

inline kernel_wakes(who) { in_kernel[who] = false }
#endif

/* Parking::wake_one, and the loop of notify_allowed, including Parking::wake. */
inline wake_one_who_may(number) {
  do
  :: atomic { other < WORKERS && (!may_run(other, number) || !claimable(load(state(other)))) ->
              other++ }
  :: atomic { other < WORKERS && may_run(other, number) && claimable(load(state(other))) };
     atomic { /* [claim] */
       fence();
       if
       :: sleeping(memory[state(other)]) -> memory[state(other)] = claimed; won = true
       :: memory[state(other)] == leaving -> memory[state(other)] = called; other = 0; break
       :: else /* the loop looks again */
       fi
     };
     if
     :: won ->
#ifdef LATE_COUNT
        store(state(other), notified);
        change(SLEEPER, SEARCHER);
        atomic { other = 0; won = false; break }
#else
        change(SLEEPER, SEARCHER); /* [waker-count] */
#ifdef TREE
        store(state(other), notified);
        fence();
        atomic { kernel_wakes(other); other = 0; won = false; break }
#else
        atomic { store(state(other), notified); other = 0; won = false; break } /* [waker-state] */
#endif
#endif
     :: else
     fi
  :: atomic { other >= WORKERS -> other = 0; break }
  od
}

inline notify_allowed(number) {
  if
  :: sleepers > 0 -> wake_one_who_may(number)
  :: else
  fi
}

/* For work that every worker may run: detail::published, Wave::needs_sleeper. */
inline notify() {
  if /* [producer-look] */
  :: sleepers > 0 && searchers == 0 -> wake_one_who_may(0)
  :: else
  fi
}

#ifdef LEVELS
#define OWN_COUNTS Counts seen; bool shown
#else
#define OWN_COUNTS skip
#endif

proctype producer(byte me; byte number) {
  byte other;
  OWN_COUNTS;
  bool won;
#ifdef MIXED
  store(below, 1);
  store(work(1), 1);
  light_fence();
  notify_allowed(1);
#ifndef NO_MOVE
  atomic { fence(); memory[below] = 0 }; /* Worker::hand_over */
  light_fence();
  notify_allowed(1);
#endif
  producers_done++;
#endif
  store(work(number), 1); /* [push-publish] */
  light_fence();          /* [producer-fence] */
#if defined(RESTRICTED) && !defined(PLAIN_NOTIFY) && !defined(MIXED)
  notify_allowed(number);
#else
  notify();
#endif
  producers_done++
}

/* Parking::withdraw */
inline withdraw_or_sleep() {
  atomic {
    fence();
    if
    :: memory[state(me)] == asleep -> memory[state(me)] = awake
    :: else -> goto sleeps
    fi
  };
  change(SLEEPER, SEARCHER);
  goto searcher
}

#ifdef TREE
/* Parking::Wave::add, for one worker. `won`: it is in the tree. */
inline add(who, won) {
  do
  :: atomic { !claimable(load(state(who))) -> break }
  :: atomic { claimable(load(state(who))) };
     atomic { /* [claim] */
       fence();
       if
       :: sleeping(memory[state(who)]) -> memory[state(who)] = claimed; won = true
       :: else
       fi
     };
     if
     :: won -> change(SLEEPER, SEARCHER); break /* [waker-count] */
     :: else
     fi
  od
}

/* Publishes work for each worker and adds the workers to one tree, in this order. As a worker does
 * (Worker::make_ready), with the light fence; other threads have a full one.
 *
 * Two nodes are enough: a node looks at its own word and at those that it wakes only. A worker whose
 * place a thread gives back is in no tree: to add it is the step from `leaving` to `called`, as in
 * wake_one_who_may, and that thread wakes it alone. */
proctype wave(byte me) {
  bool has_0, has_1;
  OWN_COUNTS;
  store(work(0), 1);
  light_fence();
  add(0, has_0);
  store(work(1), 1);
  light_fence();
  add(1, has_1);
#ifdef LATE_LINK
  if
  :: has_0 -> store(state(0), notified); fence()
  :: else
  fi;
#endif
  if
  :: has_0 && has_1 -> wakes_other[0] = true /* [tree-link] */
  :: else
  fi;
#ifdef PARENT_FIRST
  if
  :: has_0 -> store(state(0), notified)
  :: else
  fi;
#endif
  if
  :: has_1 -> store(state(1), notified) /* [tree-run] */
  :: else
  fi;
#if !defined(PARENT_FIRST) && !defined(LATE_LINK)
  if
  :: has_0 -> store(state(0), notified)
  :: else
  fi;
#endif
  fence();
  if /* [tree-wake] */
  :: has_0 -> kernel_wakes(0)
  :: !has_0 && has_1 -> kernel_wakes(1)
  :: else
  fi;
  has_0 = false;
  has_1 = false;
  producers_done = producers_done + 2
}

/* Another producer, whose work for worker 1 was taken meanwhile. */
proctype waker(byte me) {
  bool has_1;
  OWN_COUNTS;
  add(1, has_1);
  if
  :: has_1 -> store(state(1), notified); fence(); kernel_wakes(1)
  :: else
  fi;
  has_1 = false
}
#endif

proctype worker(byte me) {
  byte number, other, at_cpu;
  bool won;
  OWN_COUNTS;

#ifdef LAST_LOOK
  goto with_it;
#endif
busy:
  change(0, SEARCHER); /* start_search */

searcher:
  do
  :: atomic { number < PRODUCERS && (!may_run(me, number) || !in_sight(number)) -> number++ }
  :: atomic { number < PRODUCERS && may_run(me, number) && in_sight(number) };
     atomic { /* [steal-cas] */
       fence();
       if
       :: in_sight(number) -> memory[work(number)] = 0; number = 0; goto found
       :: else -> number++
       fi
     }
  :: atomic { number >= PRODUCERS -> number = 0; break }
  od;

  /* prepare */
  change(SEARCHER, SLEEPER); /* [sleeper-count] */
  store(state(me), asleep);  /* [sleeper-state] */
  heavy_fence();             /* [sleeper-fence] */

#ifndef NO_SECOND_LOOK
  do
  :: atomic { number < PRODUCERS && (!may_run(me, number) || !in_sight(number)) -> number++ }
  :: atomic { number < PRODUCERS && may_run(me, number) && in_sight(number) -> number = 0 };
     withdraw_or_sleep() /* cancel */
  :: atomic { number >= PRODUCERS -> number = 0; break }
  od;
#endif

  /* commit, and await_notified */
#ifdef STAND_IN
  atomic { /* [sleeper-parks] */
    fence();
    if
    :: memory[state(me)] == asleep -> memory[state(me)] = parked
    :: else
    fi
  };
#endif
sleeps:
#ifdef TREE
end_asleep:
  do
  :: atomic { load(state(me)) == notified -> store(state(me), awake) };
     atomic { /* [woken-wakes] */
       if
#ifndef NO_CHILD
       :: wakes_other[me] -> wakes_other[me] = false; kernel_wakes(1 - me)
#endif
       :: else
       fi;
       goto searcher
     }
  :: atomic { load(state(me)) != notified -> in_kernel[me] = true };
end_in_kernel:
     !in_kernel[me]
  od;
#else
end_asleep:
  atomic { load(state(me)) == notified -> store(state(me), awake); goto searcher };
#endif

found: /* end_search */
  change(SEARCHER, 0);
#ifndef NO_LAST_SEARCHER
  if
  :: searchers == 0 && sleepers > 0 ->
#ifdef LAST_LOOK
     if
     :: sleepers == OTHERS -> /* all_asleep */
#ifdef NO_LOOK
        goto with_it
#else
        if
        :: load(work(1)) != 1 -> goto with_it
        :: else
        fi
#endif
     :: else
     fi;
#endif
     wake_one_who_may(ANYTHING) /* [last-searcher] */
  :: else
  fi;
#endif

with_it:
  if
  :: goto busy
#ifdef LAST_LOOK
  :: atomic { !published -> published = true };
     store(work(0), 1);
     light_fence();
     notify();
     goto with_it
#endif
  :: skip
  fi;
end_busy: /* forever */
  false
}

#ifdef STAND_IN
/* Worker 1: busy, or a searcher that becomes busy. It publishes work 0 and stays busy, or publishes
 * nothing. */
proctype busy_worker(byte me) {
  byte other;
  bool won;
  OWN_COUNTS;
  if
  :: skip
  :: change(0, SEARCHER);
#ifdef BATCH
     store(work(0), 1);
     light_fence();
     notify_allowed(0);
     change(SEARCHER, 0); /* whom end_search wakes may not run it */
     producers_done++;
     goto over
#else
     change(SEARCHER, 0); /* end_search, with its full fence */
#ifndef NO_LAST_SEARCHER
     if
     :: searchers == 0 && sleepers > 0 -> wake_one_who_may(0)
     :: else
     fi;
#endif
     if
     :: skip
     :: producers_done++; goto over
     fi
#endif
  fi;
  store(work(0), 1);
  light_fence();
  notify();
  producers_done++;
over:
  skip
}

#endif

#if defined(STAND_IN) || defined(LAST_LOOK)
/* A thread that is no worker: work 1 is in a queue. */
proctype outside(byte me) {
  byte other;
  bool won;
  OWN_COUNTS;
  store(work(1), 1);
#ifndef LIGHT_OUTSIDE
  fence();
#endif
  if
  :: skip; notify_allowed(1) /* for some workers */
#ifndef BATCH /* there the searcher's end_search wakes nobody */
  :: skip; notify() /* for all, in a chiplet's queue */
#endif
  fi;
  producers_done++
}
#endif

#ifdef STAND_IN
/* Another one, in the place of worker 0, once or never. */
proctype stand_in(byte me) {
  byte number, at_cpu;
  bool idle;
  OWN_COUNTS;
  if
  :: atomic { memory[state(0)] == parked -> fence(); memory[state(0)] = borrowed } /* [borrow] */
  :: stood_in = true; goto over
  fi;
  change(SLEEPER, 0); /* [borrow-count] */
  change(0, SLEEPER); /* [return-count] */
#ifndef LATE_STATE
  store(state(0), leaving); /* [return-state] */
#endif
#ifndef NO_RETURN_FENCE
  fence();
#ifdef ALONE
  idle = true;
#else
#ifdef SEARCHERS_SLEEP
  idle = (sleepers + searchers == WORKERS);
#else
  idle = (sleepers == WORKERS); /* all_asleep */
#endif
#endif
#ifndef ONLY_OWN_FENCE
  if
  :: !idle -> heavy_fence() /* [return-fence] */
  :: else
  fi;
#endif
#endif
#ifndef NO_RETURN_LOOK
  number = (idle -> 1 : 0);
  do
  :: atomic { number < PRODUCERS && load(work(number)) != 1 -> number++ }
  :: atomic { number < PRODUCERS && load(work(number)) == 1 -> number = 0; goto wakes }
  :: atomic { number >= PRODUCERS -> number = 0; break }
  od;
#endif
#ifdef LATE_STATE
  store(state(0), parked);
  fence();
  goto gone;
#endif
  atomic { /* [return-parks] */
    fence();
    if
    :: memory[state(0)] == leaving -> memory[state(0)] = parked; goto gone
    :: else
    fi
  };
wakes: /* end_return_awake */
  change(SLEEPER, SEARCHER);
  store(state(0), notified);
  fence();
gone:
  stood_in = true;
over:
  idle = false
}
#endif

init {
  atomic {
    run worker(0);
#if defined(TREE)
    run worker(1);
    run wave(2);
    run waker(3)
#elif defined(STAND_IN)
#ifdef ALONE
    producers_done++;
#else
    run busy_worker(1);
#endif
    run outside(2);
    run stand_in(3)
#elif defined(LAST_LOOK)
    run worker(1);
    run outside(2);
#ifdef BUSY
    run producer(3, 0)
#else
    producers_done++
#endif
#else
#if defined(LEVELS) && defined(RESTRICTED)
    run producer(2, 1);
#else
    run producer(2, 0);
#endif
#ifdef MIXED
    if
    :: run worker(1)
    :: skip
    fi
#else
    run worker(1);
#ifdef LEVELS
    producers_done++
#else
    run producer(3, 1)
#endif
#endif
#endif
  }
}

#define lost(worker, number) \
  (sleeping(memory[state(worker)]) && memory[work(number)] == 1 && may_run(worker, number))

bool lost_wake_up;

active proctype judge() {
  timeout;
  assert(producers_done == PRODUCERS); /* that is, works published */
  assert(memory[state(0)] != claimed && memory[state(1)] != claimed);
  assert(stood_in);
  lost_wake_up = lost(0, 0) || lost(0, 1) || lost(1, 0) || lost(1, 1);
#ifdef TREE
  lost_wake_up = lost_wake_up || in_kernel[0] && memory[state(0)] == notified ||
                 in_kernel[1] && memory[state(1)] == notified;
#endif
  assert(!lost_wake_up)
}
