//! Reading a structure of a caller, which may be of an older version and so shorter.

use std::ptr;

/// A structure of integers whose first field is its size.
pub trait Argument: Copy {
    /// What it is where a caller has no field.
    const ABSENT: Self;
    /// The bytes that a caller has at least: those of the structure in version 1 of the interface.
    const LEAST: usize = size_of::<Self>();
}

/// Reads a structure. `None` if the pointer is null or the size is below that of version 1.
///
/// # Safety
/// `from` is null, or points to as many readable bytes as its first field says.
pub unsafe fn read<T: Argument>(from: *const T) -> Option<T> {
    if from.is_null() {
        return None;
    }
    // SAFETY: every structure begins with its size, and `from` is not null.
    let size = unsafe { from.cast::<u64>().read_unaligned() };
    let size = usize::try_from(size).ok().filter(|size| *size >= T::LEAST)?.min(size_of::<T>());
    let mut into = T::ABSENT;
    // SAFETY: both have at least `size` bytes, they do not overlap, and every bit pattern of these structures
    // is one.
    unsafe { ptr::copy_nonoverlapping(from.cast::<u8>(), (&raw mut into).cast::<u8>(), size) };
    Some(into)
}
