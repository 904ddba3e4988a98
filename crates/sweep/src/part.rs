//! Opens the parts of a store. Who may write into it may be hostile: a part of some kilobytes can hold a value of a
//! gigabyte, or name a long one in each of its rows.

use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::basic::Type;
use parquet::column::page::{Page, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::serialized_reader::SerializedPageReader;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// The most bytes of a group of rows in memory, and those of a batch that a dictionary makes of it.
const MOST: usize = 1 << 28;

/// A part whose groups of rows each fit into memory, as its metadata say.
pub(crate) struct PartFile {
    pub(crate) reader: ParquetRecordBatchReaderBuilder<File>,
    pub(crate) file: Arc<File>,
    most: usize,
}

impl PartFile {
    /// Opens a part.
    ///
    /// # Errors
    /// If it cannot be read, or a group of its rows is larger than [`MOST`].
    pub(crate) fn open(file: &Path) -> Result<Self> {
        Self::within(file, MOST)
    }

    fn within(file: &Path, most: usize) -> Result<Self> {
        let file = slowstart_files::open(file)?;
        let reader = ParquetRecordBatchReaderBuilder::try_new(file.try_clone()?)?;
        for group in reader.metadata().row_groups() {
            let sizes =
                group.columns().iter().map(|c| usize::try_from(c.uncompressed_size()).unwrap_or(usize::MAX));
            if sizes.fold(0, usize::saturating_add) > most {
                let why = format!(
                    "found a group of rows with more than {} MiB, expected a part of a store",
                    most >> 20
                );
                return Err(ParquetError::General(why));
            }
        }
        Ok(Self { reader, file: Arc::new(file), most })
    }

    /// Reads the columns of these names, in batches of at most `rows` rows.
    ///
    /// # Errors
    /// If its pages cannot be read.
    pub(crate) fn read(self, names: &[&str], rows: usize) -> Result<ParquetRecordBatchReader> {
        let mask = ProjectionMask::columns(self.reader.parquet_schema(), names.iter().copied());
        let fit = self.most / self.longest_row(&mask)?.max(1);
        self.reader.with_projection(mask).with_batch_size(rows.min(fit).max(1)).build()
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
    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;
    use parquet::basic::{Compression, ZstdLevel};
    use parquet::file::properties::WriterProperties;

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
}
