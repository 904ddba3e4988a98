//! What the pages of a part are unpacked to, by their own headers. The metadata of a part may say less, and readers of
//! Parquet allocate what the headers say.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

/// The most structures within each other, and the most bytes of a header.
const DEEPEST: usize = 8;
const LONGEST: u64 = 1 << 16;

/// Returns the bytes of the pages of a column once they are unpacked. They begin at `start` and have `length` bytes.
pub(crate) fn unpacked(file: &File, start: u64, length: u64) -> io::Result<u64> {
    let mut file = BufReader::new(file);
    file.seek(SeekFrom::Start(start))?;
    let (mut left, mut sum) = (length, 0_u64);
    while left > 0 {
        let mut header = Header { from: (&mut file).take(LONGEST), sizes: [None; 2] };
        header.structure(0)?;
        let [Some(unpacked), Some(packed)] = header.sizes else { return Err(bad()) };
        let read = LONGEST - header.from.limit();
        left = left.checked_sub(read.saturating_add(packed)).ok_or_else(bad)?;
        sum = sum.saturating_add(unpacked);
        file.seek_relative(i64::try_from(packed).map_err(|_| bad())?)?;
    }
    Ok(sum)
}

fn bad() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "found a page without a valid header")
}

/// A header of a page, in Thrift's compact protocol.
struct Header<R> {
    from: io::Take<R>,
    /// Fields 2 and 3: the size of the page, and that of its compressed bytes.
    sizes: [Option<u64>; 2],
}

impl<R: Read> Header<R> {
    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.from.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    fn number(&mut self) -> io::Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(bad())
    }

    /// Reads a structure at this depth, up to its end.
    fn structure(&mut self, depth: usize) -> io::Result<()> {
        let mut id = 0;
        loop {
            let byte = self.byte()?;
            if byte == 0 {
                return Ok(());
            }
            id = if byte >> 4 == 0 { self.number()? >> 1 } else { id + u64::from(byte >> 4) };
            let kind = byte & 0xf;
            if depth == 0 && kind == 5 && (2..4).contains(&id) {
                let number = self.number()?;
                // The sign is the lowest bit, and no size is below 0.
                let size = (number & 1 == 0).then_some(number >> 1).ok_or_else(bad)?;
                self.sizes[id as usize - 2] = Some(size);
            } else {
                self.value(kind, depth)?;
            }
        }
    }

    /// Reads over a value of this kind.
    fn value(&mut self, kind: u8, depth: usize) -> io::Result<()> {
        let skip = match kind {
            // True and false are in the kind.
            1 | 2 => 0,
            3 => 1,
            4..=6 => return self.number().map(drop),
            7 => 8,
            8 => self.number()?,
            12 if depth < DEEPEST => return self.structure(depth + 1),
            // Headers of pages have no lists and no maps.
            _ => return Err(bad()),
        };
        let read = io::copy(&mut (&mut self.from).take(skip), &mut io::sink())?;
        if read < skip { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}
