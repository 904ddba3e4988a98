//! Files that are read as a whole, up to a limit: their authors may be hostile, and some never end.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::Path;

/// The most bytes of a text that a person writes: studies, paths, plans.
pub const MOST_TEXT: u64 = 1 << 24;
/// The most bytes of what this program writes and reads again as a whole: reports, baselines.
pub const MOST_REPORT: u64 = 1 << 28;

/// Reads a file of at most `most` bytes.
///
/// # Errors
/// If it cannot be read, or is longer.
pub fn read(file: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_from(File::open(file)?, most)
}

/// Reads a text of at most `most` bytes.
///
/// # Errors
/// If it cannot be read, is longer, or is not UTF-8.
pub fn read_text(file: &Path, most: u64) -> io::Result<String> {
    let bytes = read(file, most)?;
    String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        io::Error::new(io::ErrorKind::InvalidData, format!("offset {at}: found a byte that is no UTF-8"))
    })
}

/// Reads everything that is left, at most `most` bytes.
///
/// # Errors
/// If it cannot be read, or there is more.
pub fn read_from(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let bytes = head(from, most + 1)?;
    if bytes.len() as u64 > most {
        let why = format!("found more than {most} bytes, expected a smaller file");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

/// Reads the next `most` bytes, fewer if there are no more.
///
/// # Errors
/// If they cannot be read.
#[expect(clippy::disallowed_methods, reason = "here the limit is set")]
pub fn head(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a line into `line`, with its line feed, but at most `most` bytes of it. Returns their number: 0 at the
/// end.
///
/// # Errors
/// If it cannot be read.
#[expect(clippy::disallowed_methods, reason = "here the limit is set")]
pub fn line(from: impl BufRead, most: u64, line: &mut Vec<u8>) -> io::Result<usize> {
    line.clear();
    from.take(most).read_until(b'\n', line)
}

/// The text of a file of the kernel, such as those of `/proc`.
///
/// # Errors
/// If it cannot be read, is longer than [`MOST_TEXT`], or is not UTF-8.
pub fn read_kernel(file: impl AsRef<Path>) -> io::Result<String> {
    read_text(file.as_ref(), MOST_TEXT)
}
