/* Total store order, as in x86: a processor's stores go through its own short queue, and other
 * processors see a store only once it has left the queue. (Sewell et al., "x86-TSO", CACM 2010.)
 *
 * A model defines CPUS and CELLS, includes this file, and gives each of its processes a constant
 * `me` below CPUS. Loads see the processor's own queue first. A locked instruction is an atomic
 * block that begins with fence() and then uses memory[] itself.
 */
#define DEPTH 2

typedef Queue {
  byte count;
  byte cell[DEPTH];
  byte value[DEPTH]
};

byte memory[CELLS];
Queue queue[CPUS];

#define OWN queue[me]
#define load(at)                                            \
  ((OWN.count > 1 && OWN.cell[1] == (at)) -> OWN.value[1] : \
  ((OWN.count > 0 && OWN.cell[0] == (at)) -> OWN.value[0] : memory[at]))

inline store(at, what) {
  atomic {
    OWN.count < DEPTH ->
    OWN.cell[OWN.count] = at;
    OWN.value[OWN.count] = what;
    OWN.count++
  }
}

/* The oldest store of a processor reaches memory. */
inline leave(cpu) {
  memory[queue[cpu].cell[0]] = queue[cpu].value[0];
  queue[cpu].cell[0] = queue[cpu].cell[1];
  queue[cpu].value[0] = queue[cpu].value[1];
  queue[cpu].cell[1] = 0;
  queue[cpu].value[1] = 0;
  queue[cpu].count--
}

/* A full fence: waits until the processor's own queue is empty. */
#define fence() (OWN.count == 0)

/* The kernel has a full fence first, and then interrupts one processor after the other; each empties
 * its queue. (membarrier_private_expedited in kernel/sched/membarrier.c) */
inline membarrier() {
  fence();
  do
  :: d_step {
       at_cpu < CPUS ->
       do
       :: queue[at_cpu].count > 0 -> leave(at_cpu)
       :: else -> break
       od;
       at_cpu++
     }
  :: atomic { at_cpu >= CPUS -> at_cpu = 0; break }
  od
}

/* At any time, any processor's oldest store may reach memory. */
active proctype hardware() {
end:
  do
  :: d_step { CPUS > 0 && queue[0].count > 0 -> leave(0) }
  :: d_step { CPUS > 1 && queue[1].count > 0 -> leave(1) }
#if CPUS > 2
  :: d_step { queue[2].count > 0 -> leave(2) }
#endif
#if CPUS > 3
  :: d_step { queue[3].count > 0 -> leave(3) }
#endif
#if CPUS > 4
  :: d_step { queue[4].count > 0 -> leave(4) }
#endif
  od
}

/* light_fence() and heavy_fence() of asymmetric_fence.hpp, minus those that a variant removes. With
 * MEMBARRIER the heavy fence is membarrier; with NO_MEMBARRIER too, only this processor's share. */
inline light_fence() {
#if defined(MEMBARRIER) || defined(NO_LIGHT_FENCE)
  skip
#else
  fence()
#endif
}

inline heavy_fence() {
#if defined(NO_HEAVY_FENCE)
  skip
#elif defined(MEMBARRIER) && !defined(NO_MEMBARRIER)
  membarrier()
#else
  fence()
#endif
}
