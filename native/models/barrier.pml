/* native/src/runtime/waiting/barrier.cpp, the tree: each phase lets through PARTIES of those that
 * have arrived, and nobody waits for ever.
 *
 * More tasks than PARTIES arrive, each time at any leaf, ARRIVALS times in all. All shared words are
 * changed by locked instructions, or by one thread that then does one, so the order of stores is
 * the program's. Words do not wrap here. When nothing can move any more, all are through.
 *
 * Variants:
 *   NO_SUM             the last party takes what the leaves show, without counting
 *   NO_FIRST_LOOK      it looks at each leaf again when it lets that leaf through
 *   EARLY_ROOT         the root has room for the next phase before the leaves are let through
 */
#define PARTIES 2
#define TASKS 3
#define ARRIVALS 6
#define LEAVES 2

byte tickets[LEAVES], pending[LEAVES], brought[LEAVES], until[LEAVES], leaf_passed[LEAVES];
byte arrived, passed;
byte turns = ARRIVALS;
byte begun, through;
bool by_phases = true;

#define shown (brought[0] - leaf_passed[0] + brought[1] - leaf_passed[1])

inline end_phase() {
#ifdef EARLY_ROOT
  passed = seen + PARTIES;
#endif
  do
  :: until[0] = brought[0]; /* [phase-look] */
     until[1] = brought[1];
#ifdef NO_SUM
     break
#else
     if
     :: until[0] + until[1] == leaf_passed[0] + leaf_passed[1] + PARTIES -> break
     :: else -> shown == PARTIES /* look again */
     fi
#endif
  od;
  at = 0;
  do
  :: at < LEAVES ->
#ifdef NO_FIRST_LOOK
     until[at] = brought[at];
#endif
     leaf_passed[at] = until[at]; /* [leaf-pass] */
     at++
  :: else -> at = 0; break
  od;
#ifndef EARLY_ROOT
  passed = seen + PARTIES /* [root-pass] */
#endif
}

/* Brings `count` of the leaf's arrivals to the root, at most `waiting`. */
inline admit() {
  before = brought[leaf];
  do
  :: seen = passed; /* [admit-room] */
     root = arrived;
     if
     :: root >= seen + PARTIES -> passed > seen
     :: else ->
        count = (waiting < seen + PARTIES - root -> waiting : seen + PARTIES - root);
        brought[leaf] = before + count; /* [admit-show] */
        if
        :: atomic { arrived == root -> arrived = root + count }; /* [admit-take] */
           if
           :: root + count == seen + PARTIES -> end_phase()
           :: else
           fi;
           break
        :: atomic { arrived != root -> brought[leaf] = before } /* [admit-back] */
        fi
     fi
  od
}

proctype task() {
  byte leaf, ticket, waiting, count, before, seen, root, at;
  do
  :: atomic {
       turns > 0 -> turns--;
       begun++;
       if
       :: leaf = 0
       :: leaf = 1
       fi
     };
     atomic { /* [leaf-arrive] */
       ticket = tickets[leaf];
       tickets[leaf]++;
       waiting = (pending[leaf] == 0 -> 1 : 0);
       pending[leaf]++
     };
     do
     :: waiting > 0 ->
        admit();
        atomic { /* [bring-rest] */
          pending[leaf] = pending[leaf] - count;
          waiting = pending[leaf]
        }
     :: else -> break
     od;
     atomic {
       leaf_passed[leaf] > ticket; /* [leaf-wait] */
       through++;
       by_phases = through <= begun / PARTIES * PARTIES;
       assert(by_phases);
       leaf = 0; ticket = 0; count = 0; before = 0; seen = 0; root = 0
     }
  :: turns == 0 -> break
  od
}

init {
  atomic { run task(); run task(); run task() }
}

bool all_through;

active proctype judge() {
  timeout;
  all_through = through == ARRIVALS;
  assert(all_through)
}
