//! Limits on the memory for files, so that a small compressed file, or many at once, cannot exhaust it.
//!
//! Captures, kernel logs, kernel events and rows are read as a stream; of qlog, `ss`, NDT7 and flent files,
//! which must be read to the end before their first result, the events and samples are held in a compact
//! form, up to [`MOST_HELD`] bytes. What follows is not read: the rows are those of the part before, and the
//! report says where it ends. Of files that are read at the same time, one may hold more than [`FEW_HELD`];
//! others that need more wait for it, so that results do not depend on what else is read.

use crate::error::InputError;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, SeqAccess, Visitor};
use std::cell::RefCell;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum bytes of events and samples held of one file.
pub const MOST_HELD: usize = 1 << 28;
/// Bytes of events and samples that each file may hold while another holds up to [`MOST_HELD`].
pub const FEW_HELD: usize = 1 << 24;
/// Maximum window of a zstd frame, bytes: what RFC 8878 (3.1.1.1.2) recommends to support, and what
/// `zstd -19` needs.
pub const MOST_WINDOW: u64 = 1 << 23;
/// Maximum length of a line, of a JSON string and of a JSON number, in bytes.
pub const LONGEST: usize = 1 << 20;
/// Maximum number of connections of kernel events that are live at a time; the oldest is ended when another
/// begins.
pub const MOST_LIVE: usize = 1024;

/// The error text for a file with too much to hold.
pub(crate) fn too_much(what: &str) -> String {
    format!("found more than {} MiB of {what}, expected a shorter file: split it", MOST_HELD >> 20)
}

/// The turn to hold more than [`FEW_HELD`] bytes.
static TURN: Mutex<()> = Mutex::new(());

thread_local! {
    /// How many counts of this thread have the turn, and the turn: a file is read by one thread, in several
    /// places.
    static TURNS: RefCell<(usize, Option<MutexGuard<'static, ()>>)> = const { RefCell::new((0, None)) };
}

/// A count of the bytes that a parser holds.
#[derive(Debug, Default)]
pub struct Held {
    bytes: usize,
    has_turn: bool,
}

impl Held {
    /// Adds bytes that are to be held. Above [`FEW_HELD`] it waits until no other thread holds that many.
    ///
    /// # Errors
    /// If they are more than [`MOST_HELD`]; `what` names them.
    pub fn add(&mut self, bytes: usize, what: &str) -> Result<(), String> {
        self.bytes += bytes;
        if self.bytes > FEW_HELD && !self.has_turn {
            self.has_turn = true;
            TURNS.with_borrow_mut(|(n, turn)| {
                *n += 1;
                turn.get_or_insert_with(|| TURN.lock().unwrap_or_else(PoisonError::into_inner));
            });
        }
        if self.bytes > MOST_HELD { Err(too_much(what)) } else { Ok(()) }
    }
}

impl Drop for Held {
    /// Gives the turn to another thread.
    fn drop(&mut self) {
        if self.has_turn {
            TURNS.with_borrow_mut(|(n, turn)| {
                *n -= 1;
                turn.take_if(|_| *n == 0);
            });
        }
    }
}

/// The lines of a text with their numbers, from 1.
pub struct Lines<R> {
    input: BufReader<R>,
    number: u64,
    separators: &'static [u8],
}

impl<R: Read> Lines<R> {
    /// Lines end with a line feed.
    pub fn new(input: R) -> Self {
        Self { input: BufReader::new(input), number: 1, separators: b"\n" }
    }

    /// Records end with a line feed or a record separator (RFC 7464).
    pub fn records(input: R) -> Self {
        Self { separators: b"\n\x1e", ..Self::new(input) }
    }

    fn read(&mut self) -> Result<Option<(u64, String)>, InputError> {
        let (number, mut line) = (self.number, Vec::new());
        let refuse = |why: String| InputError::line(number, why);
        loop {
            let part = match self.input.fill_buf() {
                Ok(part) => part,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(refuse(e.to_string())),
            };
            if part.is_empty() && line.is_empty() {
                return Ok(None);
            }
            let end = part.iter().position(|b| self.separators.contains(b));
            let used = end.map_or(part.len(), |e| e + 1);
            line.extend_from_slice(&part[..used]);
            let last = used == 0 || end.is_some();
            self.input.consume(used);
            if line.len() > LONGEST {
                return Err(refuse(format!("found more than {LONGEST} bytes, expected a shorter line")));
            }
            if last {
                break;
            }
        }
        self.number += u64::from(line.last() == Some(&b'\n'));
        let text =
            String::from_utf8(line).map_err(|_| refuse("found bytes that are not UTF-8".to_string()))?;
        Ok(Some((number, text)))
    }
}

impl<R: Read> Iterator for Lines<R> {
    type Item = Result<(u64, String), InputError>;
    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

/// A JSON text in which no string and no number is longer than [`LONGEST`]: a parser must hold each as a
/// whole.
pub struct Tokens<R> {
    input: R,
    length: usize,
    place: Place,
}

/// Where in a JSON text a byte stands.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Place {
    Between,
    Text,
    /// Behind the backslash of a string.
    Escaped,
}

impl<R: Read> Tokens<R> {
    /// With this limit on `input`.
    pub fn new(input: R) -> Self {
        Self { input, length: 0, place: Place::Between }
    }
}

impl<R: Read> Read for Tokens<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.input.read(buf)?;
        for b in &buf[..n] {
            self.place = match (self.place, b) {
                (Place::Text, b'\\') => Place::Escaped,
                (Place::Between, b'"') | (Place::Escaped, _) => Place::Text,
                (Place::Text, b'"') => Place::Between,
                (place, _) => place,
            };
            let separates = matches!(b, b'"' | b',' | b':' | b'{' | b'}' | b'[' | b']' | b'\n' | b' ');
            let separates = separates && self.place == Place::Between;
            self.length = if separates { 0 } else { self.length + 1 };
            if self.length > LONGEST {
                return Err(io::Error::other(format!(
                    "found more than {LONGEST} bytes, expected a shorter string or number"
                )));
            }
        }
        Ok(n)
    }
}

/// A number of a JSON text, or one written as a string, as early drafts of qlog do; `None` for everything
/// else.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Number(pub Option<f64>);

impl Number {
    /// The number, if it is finite and not negative.
    pub fn real(self) -> Option<f64> {
        self.0.filter(|n| n.is_finite() && *n >= 0.0)
    }
    /// The number as an integer below `most`.
    pub fn below(self, most: u64) -> Option<u64> {
        self.real().filter(|n| *n < most as f64).map(|n| n as u64)
    }
}

/// Methods of a visitor of any JSON value: values of these types count as the default.
macro_rules! default_for {
    (scalars) => {
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
    (arrays) => {
        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            while seq.next_element::<serde::de::IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
    (objects) => {
        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<serde::de::IgnoredAny, serde::de::IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
}
pub(crate) use default_for;

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Number;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }
            fn visit_bool<E>(self, _: bool) -> Result<Number, E> {
                Ok(Number(None))
            }
            fn visit_i64<E>(self, v: i64) -> Result<Number, E> {
                Ok(Number(Some(v as f64)))
            }
            fn visit_u64<E>(self, v: u64) -> Result<Number, E> {
                Ok(Number(Some(v as f64)))
            }
            fn visit_f64<E>(self, v: f64) -> Result<Number, E> {
                Ok(Number(Some(v)))
            }
            fn visit_str<E>(self, v: &str) -> Result<Number, E> {
                Ok(Number(v.parse().ok()))
            }
            fn visit_unit<E>(self) -> Result<Number, E> {
                Ok(Number(None))
            }
            default_for!(arrays);
            default_for!(objects);
        }
        d.deserialize_any(Any)
    }
}

/// A string of a JSON text; empty for everything else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word(pub String);

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = String;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_bool<E>(self, _: bool) -> Result<String, E> {
                Ok(String::new())
            }
            fn visit_i64<E>(self, _: i64) -> Result<String, E> {
                Ok(String::new())
            }
            fn visit_u64<E>(self, _: u64) -> Result<String, E> {
                Ok(String::new())
            }
            fn visit_f64<E>(self, _: f64) -> Result<String, E> {
                Ok(String::new())
            }
            fn visit_str<E>(self, v: &str) -> Result<String, E> {
                Ok(v.to_string())
            }
            fn visit_unit<E>(self) -> Result<String, E> {
                Ok(String::new())
            }
            default_for!(arrays);
            default_for!(objects);
        }
        d.deserialize_any(Any).map(Word)
    }
}

/// An object of a JSON text; the default for everything else.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Any<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for Any<T> {
            type Value = T;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(serde::de::value::MapAccessDeserializer::new(map))
            }
            default_for!(scalars);
            default_for!(arrays);
        }
        d.deserialize_any(Any(PhantomData)).map(Object)
    }
}

/// The first `N` items of an array; anything else than an array counts as empty.
#[derive(Debug, Default)]
pub struct First<T, const N: usize>(pub Vec<T>);

impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for First<T, N> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Array<T, const N: usize>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for Array<T, N> {
            type Value = Vec<T>;
            default_for!(scalars);
            default_for!(objects);
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
                let mut all = Vec::new();
                while all.len() < N {
                    match seq.next_element()? {
                        Some(item) => all.push(item),
                        None => return Ok(all),
                    }
                }
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(all)
            }
        }
        d.deserialize_any(Array::<T, N>(PhantomData)).map(Self)
    }
}

/// An array that is held as a whole, of at most [`MOST_HELD`] bytes; anything else than an array counts as
/// empty.
#[derive(Debug)]
pub struct BoundedVec<T>(pub Vec<T>, Held);

impl<T> Default for BoundedVec<T> {
    fn default() -> Self {
        Self(Vec::new(), Held::default())
    }
}

impl<T> BoundedVec<T> {
    /// Appends an item.
    ///
    /// # Errors
    /// If there are too many; `what` names them.
    pub fn push(&mut self, item: T, what: &str) -> Result<(), String> {
        self.1.add(size_of::<T>(), what)?;
        self.0.push(item);
        Ok(())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for BoundedVec<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Array<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Array<T> {
            type Value = BoundedVec<T>;
            default_for!(scalars);
            default_for!(objects);
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<BoundedVec<T>, A::Error> {
                let mut all = BoundedVec::default();
                while let Some(item) = seq.next_element()? {
                    all.push(item, "samples").map_err(Error::custom)?;
                }
                Ok(all)
            }
        }
        d.deserialize_any(Array(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_tokens_have_a_maximum_length() {
        let text = "one\ntwo\u{1e}three";
        let lines: Vec<_> = Lines::new(text.as_bytes()).map(|l| l.expect("short")).collect();
        assert_eq!(lines, [(1, "one\n".to_string()), (2, "two\u{1e}three".to_string())]);
        let records: Vec<_> = Lines::records(text.as_bytes()).map(|l| l.expect("short")).collect();
        assert_eq!((records.len(), records[2].clone()), (3, (2, "three".to_string())));
        let zeros = io::repeat(b'0').take(1 << 40);
        let e = Lines::new(zeros).next().expect("a line").expect_err("too long").to_string();
        assert_eq!(e, "line 1: found more than 1048576 bytes, expected a shorter line");
        let text = io::Cursor::new(b"{\"a\":\"").chain(io::repeat(b'x'));
        let e = serde_json::from_reader::<_, serde_json::Value>(Tokens::new(text)).expect_err("too long");
        assert!(e.to_string().contains("expected a shorter string or number"), "{e}");
        // What separates tokens elsewhere is a part of a string, as is a quote behind a backslash.
        for part in ["a, ", "{\\\"}", "\\\\: "] {
            for (before, after) in [("{\"", "\":1}"), ("[1, \"\", \"", "\"]")] {
                let of = |n: usize| [before, &part.repeat(n / part.len()), after].concat();
                let read = |text: String| {
                    serde_json::from_reader::<_, serde_json::Value>(Tokens::new(text.as_bytes()))
                };
                let e = read(of(LONGEST + 8)).expect_err("too long").to_string();
                assert!(e.contains("expected a shorter string or number"), "{part}: {e}");
                assert!(read(of(LONGEST - 8)).is_ok(), "{part}");
            }
        }
        let many = format!("[{}1]", "\"a\", 12345, ".repeat(LONGEST / 8));
        serde_json::from_reader::<_, serde_json::Value>(Tokens::new(many.as_bytes())).expect("short ones");
    }

    /// While a thread holds much, another waits with what it holds beyond the few bytes that each may, and
    /// goes on after it.
    #[test]
    fn one_file_at_a_time_holds_much() {
        let (tx, rx) = std::sync::mpsc::channel();
        let mut first = Held::default();
        first.add(FEW_HELD + 1, "x").expect("few enough");
        // The same file, in another place.
        Held::default().add(FEW_HELD + 1, "x").expect("few enough");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut second = Held::default();
                second.add(FEW_HELD, "x").expect("few");
                tx.send("few").expect("heard");
                second.add(1, "x").expect("few enough");
                tx.send("much").expect("heard");
            });
            assert_eq!(rx.recv().expect("it holds few"), "few");
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert!(rx.try_recv().is_err(), "it waits");
            drop(first);
            assert_eq!(rx.recv().expect("its turn"), "much");
        });
        assert!(
            Held::default().add(MOST_HELD + 1, "cats").expect_err("too much").contains("256 MiB of cats")
        );
    }

    #[test]
    fn values_of_another_type_are_no_error() {
        let of = |text: &str| serde_json::from_str::<Number>(text).expect("any value").real();
        assert_eq!((of("1.5"), of("\"1.5\""), of("-1"), of("[1,{}]"), of("{\"a\":1}"), of("null")), {
            (Some(1.5), Some(1.5), None, None, None, None)
        });
        assert_eq!(serde_json::from_str::<Word>("[1]").expect("any value").0, "");
    }
}
