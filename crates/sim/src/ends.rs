//! The two ends of a flow, and what there is once for each.

use std::ops::{Index, IndexMut};

/// One of the two ends of a flow.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum End {
    /// The end that listens. It sends the data of a download.
    Server = 0,
    /// The end that connects. It sends the data of an upload.
    Client = 1,
}

impl End {
    /// The peer of this end.
    #[inline]
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Server => Self::Client,
            Self::Client => Self::Server,
        }
    }
}

/// One value for each end of a flow.
#[derive(Copy, Clone, Debug, Default)]
#[repr(transparent)]
pub struct PerEnd<T>([T; 2]);

impl<T> PerEnd<T> {
    /// The values of the server and of the client.
    pub const fn new(server: T, client: T) -> Self {
        Self([server, client])
    }

    /// Both values, the server's first.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }
}

impl<'a, T> IntoIterator for &'a PerEnd<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T> Index<End> for PerEnd<T> {
    type Output = T;

    #[inline]
    fn index(&self, end: End) -> &T {
        &self.0[end as usize]
    }
}

impl<T> IndexMut<End> for PerEnd<T> {
    #[inline]
    fn index_mut(&mut self, end: End) -> &mut T {
        &mut self.0[end as usize]
    }
}
