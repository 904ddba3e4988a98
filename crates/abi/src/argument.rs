//! Reading a structure of a caller, which may be of an older version and so shorter.

use std::ptr;

/// A structure of integers whose first field is its size.
pub trait Argument: Copy {
    /// What it is where a caller has no field.
    const ABSENT: Self;
}

/// Reads a structure. `None` if the pointer is null or the size has no room for itself.
///
/// # Safety
/// `from` is null, or points to as many readable bytes as its first field says.
pub unsafe fn read<T: Argument>(from: *const T) -> Option<T> {
    if from.is_null() {
        return None;
    }
    // SAFETY: every structure begins with its size, and `from` is not null.
    let size = unsafe { from.cast::<u64>().read_unaligned() };
    let size = usize::try_from(size).ok()?.min(size_of::<T>());
    if size < size_of::<u64>() {
        return None;
    }
    let mut into = T::ABSENT;
    // SAFETY: both have at least `size` bytes, they do not overlap, and every bit pattern of these structures
    // is one.
    unsafe { ptr::copy_nonoverlapping(from.cast::<u8>(), (&raw mut into).cast::<u8>(), size) };
    Some(into)
}
