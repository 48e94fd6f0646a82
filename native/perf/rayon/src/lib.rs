//! The kernels fib and skynet (native/perf/runtime/kernel_fork.hpp) on rayon, for
//! backend_rayon.hpp. As there, every level forks.

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

fn fib(n: i32) -> i64 {
    if n < 2 {
        return n as i64;
    }
    let (first, second) = rayon::join(|| fib(n - 1), || fib(n - 2));
    first + second
}

fn skynet(first: i64, leaves: i64) -> i64 {
    if leaves == 1 {
        return first;
    }
    let part = leaves / 10;
    // Without the length, rayon would not fork all ten.
    (0..10i32)
        .into_par_iter()
        .with_max_len(1)
        .map(|i| skynet(first + i64::from(i) * part, part))
        .sum()
}

#[no_mangle]
pub extern "C" fn perf_rayon_start(threads: usize) -> *mut ThreadPool {
    Box::into_raw(Box::new(
        ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("threads"),
    ))
}

/// # Safety
/// `pool` is of `perf_rayon_start`, and nobody uses it any more.
#[no_mangle]
pub unsafe extern "C" fn perf_rayon_stop(pool: *mut ThreadPool) {
    drop(Box::from_raw(pool));
}

#[no_mangle]
pub extern "C" fn perf_rayon_fib(pool: &ThreadPool, n: i32) -> i64 {
    pool.install(|| fib(n))
}

#[no_mangle]
pub extern "C" fn perf_rayon_skynet(pool: &ThreadPool, first: i64, leaves: i64) -> i64 {
    pool.install(|| skynet(first, leaves))
}
