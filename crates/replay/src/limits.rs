//! Limits on the memory for one file, so that a small compressed file cannot exhaust it.
//!
//! Captures, kernel logs, kernel events and rows are read as a stream; of qlog, `ss`, NDT7 and flent files, which must be
//! read to the end before their first result, the events and samples are held in a compact form, up to [`MOST_HELD`]
//! bytes. What follows is not read: the rows are those of the part before, and the report says where it ends.

use crate::error::InputError;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::marker::PhantomData;

/// Maximum bytes of events and samples held of one file.
pub const MOST_HELD: usize = 1 << 28;
/// Maximum length of a line, of a JSON string and of a JSON number, in bytes.
pub const LONGEST: usize = 1 << 20;
/// Maximum number of connections of kernel events that are live at a time; the oldest is ended when another begins.
pub const MOST_LIVE: usize = 1024;

/// The error text for a file with too much to hold.
pub fn too_much(what: &str) -> String {
    format!("found more than {} MiB of {what}, expected a shorter file: split it", MOST_HELD >> 20)
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

/// A JSON text in which no string and no number is longer than [`LONGEST`]: a parser must hold each as a whole.
pub struct Tokens<R> {
    input: R,
    length: usize,
}

impl<R: Read> Tokens<R> {
    /// With this limit on `input`.
    pub fn new(input: R) -> Self {
        Self { input, length: 0 }
    }
}

impl<R: Read> Read for Tokens<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.input.read(buf)?;
        for b in &buf[..n] {
            // A quote ends a token wherever it is: an escaped quote only makes the limit larger.
            let separates = matches!(b, b'"' | b',' | b':' | b'{' | b'}' | b'[' | b']' | b'\n' | b' ');
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

/// A number of a JSON text, or one written as a string, as early drafts of qlog do; `None` for everything else.
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

/// An array that is held as a whole, of at most [`MOST_HELD`] bytes; anything else than an array counts as empty.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundedVec<T>(pub Vec<T>);

impl<T> Default for BoundedVec<T> {
    fn default() -> Self {
        Self(Vec::new())
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
                let mut all = Vec::new();
                while let Some(item) = seq.next_element()? {
                    if all.len() * size_of::<T>() >= MOST_HELD {
                        return Err(Error::custom(too_much("samples")));
                    }
                    all.push(item);
                }
                Ok(BoundedVec(all))
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
