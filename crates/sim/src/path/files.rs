//! Where the files that a path names are found: in a folder, or given as bytes by a caller without a file
//! system.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files that a path may name.
#[derive(Clone, Default)]
pub struct Files {
    /// Where relative names are looked for; empty: the current directory.
    folder: PathBuf,
    given: Arc<BTreeMap<String, Vec<u8>>>,
    /// True if the file system is not asked.
    only_given: bool,
}

#[allow(
    clippy::missing_fields_in_debug,
    reason = "the text identifies a study with its files, however they are found"
)]
impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("folder", &self.folder).field("given", &self.given).finish()
    }
}

impl Files {
    /// Files of the file system; relative names are looked for in `folder`.
    pub fn folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), ..Self::default() }
    }

    /// Files by their names, before those of the file system.
    pub fn given(files: BTreeMap<String, Vec<u8>>) -> Self {
        Self { given: Arc::new(files), ..Self::default() }
    }

    /// No file at all.
    pub fn none() -> Self {
        Self { only_given: true, ..Self::default() }
    }

    /// The folder, if all files are looked for in the file system.
    pub(super) fn on_disk(&self) -> Option<&Path> {
        (self.given.is_empty() && !self.only_given).then_some(&self.folder)
    }

    /// These files with another folder.
    pub(super) fn within(&self, folder: PathBuf) -> Self {
        Self { folder, given: Arc::clone(&self.given), only_given: self.only_given }
    }

    /// The place of a name.
    pub(super) fn place(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Opens the file at a place.
    pub(super) fn open(&self, place: &Path) -> io::Result<Box<dyn Read + '_>> {
        match place.to_str().and_then(|name| self.given.get(name)) {
            Some(bytes) => Ok(Box::new(Cursor::new(bytes.as_slice()))),
            None if self.only_given => Err(io::ErrorKind::NotFound.into()),
            None => Ok(Box::new(File::open(place)?)),
        }
    }

    /// The text of the file at a place.
    pub(super) fn text(&self, place: &Path) -> io::Result<String> {
        let bytes = slowstart_files::read_from(self.open(place)?, slowstart_files::MOST_TEXT)?;
        String::from_utf8(bytes).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e.utf8_error()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::PathSpec;
    use super::*;

    #[test]
    fn given_bytes_are_read_like_a_file() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/samples");
        let bytes = slowstart_files::read(&folder.join("example.down"), 1 << 20).expect("the sample");
        let given = Files::given([("example.down".to_string(), bytes)].into());
        let line = "trace=example.down rtt=40ms queue=1bdp";
        let from_bytes = PathSpec::load_from(line, &given).expect("given");
        let from_folder = PathSpec::load(line, Some(&folder)).expect("in the folder");
        assert_eq!(from_bytes.facts(), from_folder.facts());
        let missing = PathSpec::load_from("trace=other.down rtt=40ms", &given).map(|_| ());
        assert!(missing.expect_err("not given").to_string().contains("other.down"));
    }

    #[test]
    fn a_given_path_file_is_read() {
        let given =
            Files::given([("my.toml".to_string(), b"rate = \"20Mbit\"\nrtt = \"40ms\"".to_vec())].into());
        let path = PathSpec::load_from("my.toml", &given).expect("given");
        assert_eq!((path.name.as_str(), path.facts().rate.0), ("my", 20_000_000));
    }
}
