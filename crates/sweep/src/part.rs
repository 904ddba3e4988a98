//! Opens the parts of a store. Who may write into it may be hostile: a part of some kilobytes can hold a value of a
//! gigabyte, or name a long one in each of its rows.

use crate::pages::unpacked;
use arrow_array::RecordBatch;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::basic::Type;
use parquet::column::page::{Page, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::serialized_reader::SerializedPageReader;
use std::cell::RefCell;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most bytes of a group of rows in memory, and those of a batch that a dictionary makes of it.
const MOST: usize = 1 << 28;

/// A part whose groups of rows each fit into memory, as its metadata say.
pub(crate) struct PartFile {
    pub(crate) reader: ParquetRecordBatchReaderBuilder<File>,
    pub(crate) file: Arc<File>,
    path: PathBuf,
    most: usize,
}

thread_local! {
    /// The part that this thread reads.
    static READING: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
}

/// The message for a damaged part.
pub const DAMAGED: &str = "found damage, expected a part of a store";

/// The part that this thread reads. The readers of Parquet panic at some damage, which ends a program that does not
/// unwind: its hook can say [`DAMAGED`] by this name.
pub fn reading() -> Option<PathBuf> {
    READING.with_borrow(Clone::clone)
}

/// Reads of a part; a panic of the reader is an error, where panics unwind.
fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T>) -> Result<T> {
    READING.set(Some(path.to_path_buf()));
    let read = catch_unwind(AssertUnwindSafe(read));
    READING.set(None);
    read.unwrap_or_else(|_| Err(ParquetError::General(DAMAGED.into())))
}

/// The rows of a part, in batches.
pub(crate) struct Batches {
    path: PathBuf,
    /// `None` after an error.
    reader: Option<ParquetRecordBatchReader>,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let reader = self.reader.as_mut()?;
        let batch = guarded(&self.path, || Ok(reader.next().transpose()?)).transpose();
        if !matches!(batch, Some(Ok(_))) {
            self.reader = None;
        }
        batch
    }
}

impl PartFile {
    /// Opens a part.
    ///
    /// # Errors
    /// If it cannot be read, or a group of its rows is larger than [`MOST`].
    pub(crate) fn open(file: &Path) -> Result<Self> {
        Self::within(file, MOST)
    }

    fn within(path: &Path, most: usize) -> Result<Self> {
        let file = slowstart_files::open(path)?;
        let copy = file.try_clone()?;
        let reader = guarded(path, || ParquetRecordBatchReaderBuilder::try_new(copy))?;
        let part = Self { reader, file: Arc::new(file), path: path.to_path_buf(), most };
        for group in part.reader.metadata().row_groups() {
            let sizes =
                group.columns().iter().map(|c| u64::try_from(c.uncompressed_size()).unwrap_or(u64::MAX));
            part.bound(sizes.fold(0, u64::saturating_add))?;
        }
        Ok(part)
    }

    /// Fails if a group of rows has more bytes than fit.
    fn bound(&self, bytes: u64) -> Result<()> {
        if bytes <= self.most as u64 {
            return Ok(());
        }
        let most = self.most >> 20;
        Err(ParquetError::General(format!(
            "found a group of rows with more than {most} MiB, expected a part of a store"
        )))
    }

    /// Fails if the pages of these columns have more bytes than fit, whatever the metadata say.
    fn bound_pages(&self, mask: &ProjectionMask) -> Result<()> {
        for group in self.reader.metadata().row_groups() {
            let mut bytes = 0_u64;
            for column in
                group.columns().iter().enumerate().filter_map(|(n, c)| mask.leaf_included(n).then_some(c))
            {
                let at = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
                let (Ok(at), Ok(length)) = (u64::try_from(at), u64::try_from(column.compressed_size()))
                else {
                    return Err(ParquetError::General("found a column before the file's begin".into()));
                };
                bytes = bytes.saturating_add(unpacked(&self.file, at, length)?);
            }
            self.bound(bytes)?;
        }
        Ok(())
    }

    /// Reads the columns of these names, in batches of at most `rows` rows.
    ///
    /// # Errors
    /// If its pages cannot be read.
    pub(crate) fn read(self, names: &[&str], rows: usize) -> Result<Batches> {
        let mask = ProjectionMask::columns(self.reader.parquet_schema(), names.iter().copied());
        self.bound_pages(&mask)?;
        let path = self.path.clone();
        let reader = guarded(&path, || {
            let fit = self.most / self.longest_row(&mask)?.max(1);
            self.reader.with_projection(mask).with_batch_size(rows.min(fit).max(1)).build()
        })?;
        Ok(Batches { path, reader: Some(reader) })
    }

    /// The most bytes that a row can have by the dictionaries of these columns.
    fn longest_row(&self, mask: &ProjectionMask) -> Result<usize> {
        let mut most = 0;
        for group in self.reader.metadata().row_groups() {
            let mut row = 0;
            for (n, column) in group.columns().iter().enumerate() {
                if !mask.leaf_included(n)
                    || column.dictionary_page_offset().is_none()
                    || column.column_type() != Type::BYTE_ARRAY
                {
                    continue;
                }
                let mut pages = SerializedPageReader::new(
                    Arc::clone(&self.file),
                    column,
                    usize::try_from(group.num_rows()).unwrap_or_default(),
                    None,
                )?;
                if let Some(Page::DictionaryPage { buf, .. }) = pages.get_next_page()? {
                    row += longest(&buf);
                }
            }
            most = most.max(row);
        }
        Ok(most)
    }
}

/// The length of the longest value of a dictionary: each has its length before it, in four bytes.
fn longest(mut values: &[u8]) -> usize {
    let mut most = 0;
    while let Some((length, rest)) = values.split_first_chunk() {
        let length = u32::from_le_bytes(*length) as usize;
        most = most.max(length);
        values = rest.get(length..).unwrap_or_default();
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{ArrayRef, StringArray};
    use parquet::arrow::ArrowWriter;
    use parquet::basic::{Compression, ZstdLevel};
    use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataWriter};
    use parquet::file::properties::WriterProperties;
    use std::io::Write as _;

    fn part(values: Vec<&str>, dictionary: bool) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let level = ZstdLevel::try_new(1).expect("a level");
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_dictionary_enabled(dictionary)
            .set_dictionary_page_size_limit(1 << 30)
            .build();
        let column: ArrayRef = Arc::new(StringArray::from(values));
        let batch = RecordBatch::try_from_iter([("key", column)]).expect("a batch");
        let mut writer =
            ArrowWriter::try_new(file.as_file(), batch.schema(), Some(properties)).expect("a writer");
        writer.write(&batch).expect("rows");
        writer.close().expect("a part");
        file
    }

    #[test]
    fn a_small_part_with_much_in_it_is_refused_or_read_in_pieces() {
        let most = 1 << 22;
        let long = "0".repeat(1 << 14);
        let refused = part(vec![&long; 257], false);
        assert!(refused.path().metadata().expect("there").len() < 1 << 14);
        let why = PartFile::within(refused.path(), most).map(|_| ()).expect_err("too large").to_string();
        assert!(why.contains("a group of rows with more than 4 MiB"), "{why}");

        let file = part(vec![&long; 3000], true);
        assert!(file.path().metadata().expect("there").len() < 1 << 14);
        let (mut rows, mut largest) = (0, 0);
        for batch in
            PartFile::within(file.path(), most).expect("small").read(&["key"], 4096).expect("readable")
        {
            let batch = batch.expect("rows");
            (rows, largest) = (rows + batch.num_rows(), largest.max(batch.num_rows()));
        }
        assert_eq!((rows, largest), (3000, 256), "4 MiB at a time");
    }

    /// A part whose metadata say that its only column has 100 bytes.
    fn lying(values: Vec<&str>) -> tempfile::NamedTempFile {
        let honest = part(values, false);
        let metadata =
            ParquetRecordBatchReaderBuilder::try_new(honest.reopen().expect("there")).expect("a part");
        let metadata = ParquetMetaData::clone(metadata.metadata());
        let group = metadata.row_group(0).clone();
        let column = group.column(0).clone().into_builder().set_total_uncompressed_size(100);
        let group = group.into_builder().set_column_metadata(vec![column.build().expect("a column")]);
        let metadata = metadata.into_builder().set_row_groups(vec![group.build().expect("a group")]).build();
        let bytes = slowstart_files::read(honest.path(), 1 << 20).expect("a part");
        let at = bytes.len() - 8;
        let length = u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(&bytes[..at - length]).expect("written");
        ParquetMetaDataWriter::new(file.as_file(), &metadata).finish().expect("written");
        file
    }

    #[test]
    fn metadata_that_say_less_than_the_pages_are_not_believed() {
        let (most, long) = (1 << 22, "0".repeat(1 << 14));
        let read = |values: Vec<&str>| {
            let file = lying(values);
            PartFile::within(file.path(), most)
                .expect("it says 100 bytes")
                .read(&["key"], 4096)
                .map(|all| all.map(|batch| batch.expect("rows").num_rows()).sum::<usize>())
        };
        assert_eq!(read(vec![&long; 250]).expect("it fits"), 250);
        let why = read(vec![&long; 257]).expect_err("too large").to_string();
        assert!(why.contains("a group of rows with more than 4 MiB"), "{why}");
    }

    /// Each byte of a part is damaged, in its pages and in its metadata. The readers of Parquet panic at some: a division by
    /// zero, a length beyond the end.
    #[test]
    fn no_damaged_part_causes_a_panic() {
        let (mut read, mut refused) = (0, 0);
        for dictionary in [false, true] {
            let file = part(["search", "hystart", "search", "bbr"].repeat(50), dictionary);
            let bytes = slowstart_files::read(file.path(), 1 << 20).expect("a part");
            for at in 0..bytes.len() {
                for byte in [0, 0x7f, 0xff] {
                    let mut damaged = bytes.clone();
                    damaged[at] = byte;
                    std::fs::write(file.path(), &damaged).expect("a file is written");
                    let batches = PartFile::open(file.path()).and_then(|p| p.read(&["key"], 4096));
                    match batches.and_then(Iterator::collect::<Result<Vec<_>>>) {
                        Ok(_) => read += 1,
                        Err(_) => refused += 1,
                    }
                }
            }
        }
        println!("{read} read, {refused} refused");
        assert!(read > 0 && refused > 0);
        assert_eq!(reading(), None);
    }
}
