//! Three indexes for native/perf/indexes/crates.cpp. Each takes its guard once for all lookups,
//! which is the cheapest way that it offers.

use congee::{Congee, DefaultAllocator};
use crossbeam_skiplist::SkipMap;
use masstree::MassTree;

/// `Record` of native/src/workloads/rows.hpp.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Record {
    key: i64,
    value: i64,
}

/// `Joined` of native/src/workloads/join.hpp.
#[repr(C)]
pub struct Joined {
    rows: u64,
    build_sum: u64,
    probe_sum: u64,
}

impl Joined {
    fn add(&mut self, value: u64, probe: &Record) {
        self.rows += 1;
        self.build_sum = self.build_sum.wrapping_add(value);
        self.probe_sum = self.probe_sum.wrapping_add(probe.value as u64);
    }
}

unsafe fn slice<'a>(rows: *const Record, count: usize) -> &'a [Record] {
    if count == 0 {
        return &[];
    }
    std::slice::from_raw_parts(rows, count)
}

/// # Safety
/// `rows` has `count` records; the same of all functions here. What `..._new` gives is given to
/// `..._free` once.
#[no_mangle]
pub unsafe extern "C" fn perf_congee_new(
    rows: *const Record,
    count: usize,
) -> *mut Congee<usize, usize> {
    let index = Congee::new(DefaultAllocator {});
    let guard = index.pin();
    for row in slice(rows, count) {
        index
            .insert(row.key as usize, row.value as usize, &guard)
            .expect("memory");
    }
    drop(guard);
    Box::into_raw(Box::new(index))
}

#[no_mangle]
pub unsafe extern "C" fn perf_congee_free(index: *mut Congee<usize, usize>) {
    drop(Box::from_raw(index));
}

#[no_mangle]
pub unsafe extern "C" fn perf_congee_look_up(
    index: &Congee<usize, usize>,
    rows: *const Record,
    count: usize,
    sums: &mut Joined,
) {
    let guard = index.pin();
    for row in slice(rows, count) {
        if let Some(value) = index.get(&(row.key as usize), &guard) {
            sums.add(value as u64, row);
        }
    }
}

#[no_mangle]
pub unsafe extern "C" fn perf_masstree_new(
    rows: *const Record,
    count: usize,
) -> *mut MassTree<u64> {
    let index = MassTree::new();
    let guard = index.guard();
    for row in slice(rows, count) {
        index.insert_with_guard(&row.key.to_be_bytes(), row.value as u64, &guard);
    }
    drop(guard);
    Box::into_raw(Box::new(index))
}

#[no_mangle]
pub unsafe extern "C" fn perf_masstree_free(index: *mut MassTree<u64>) {
    drop(Box::from_raw(index));
}

#[no_mangle]
pub unsafe extern "C" fn perf_masstree_look_up(
    index: &MassTree<u64>,
    rows: *const Record,
    count: usize,
    sums: &mut Joined,
) {
    let guard = index.guard();
    for row in slice(rows, count) {
        if let Some(value) = index.get_with_guard(&row.key.to_be_bytes(), &guard) {
            sums.add(value, row);
        }
    }
}

#[no_mangle]
pub unsafe extern "C" fn perf_skiplist_new(
    rows: *const Record,
    count: usize,
) -> *mut SkipMap<i64, i64> {
    let index = SkipMap::new();
    for row in slice(rows, count) {
        index.insert(row.key, row.value);
    }
    Box::into_raw(Box::new(index))
}

#[no_mangle]
pub unsafe extern "C" fn perf_skiplist_free(index: *mut SkipMap<i64, i64>) {
    drop(Box::from_raw(index));
}

#[no_mangle]
pub unsafe extern "C" fn perf_skiplist_look_up(
    index: &SkipMap<i64, i64>,
    rows: *const Record,
    count: usize,
    sums: &mut Joined,
) {
    // An entry pins for itself; with an outer pin that is a counter only.
    let _guard = crossbeam_epoch::pin();
    for row in slice(rows, count) {
        if let Some(entry) = index.get(&row.key) {
            sums.add(*entry.value() as u64, row);
        }
    }
}
