//! Parameters of algorithms: a public struct with the defaults of the source, which users write as
//! `name:key=value,key=value`.

use crate::units::{Fixed, Span};

/// The value of a parameter, for results and listings.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum ParamValue {
    /// A number; times are in seconds.
    Number(f64),
    /// A word: `on`, `off`, or one of a choice.
    Word(&'static str),
}

/// A type that a parameter can have.
pub trait Value: Sized + Copy {
    /// Parses text; `None` if it is not a value of this type.
    fn read(text: &str) -> Option<Self>;
    /// Returns the value for results and listings.
    fn show(self) -> ParamValue;
}

impl Value for Fixed {
    fn read(text: &str) -> Option<Self> {
        Self::parse(text)
    }
    fn show(self) -> ParamValue {
        ParamValue::Number(self.as_f64())
    }
}

impl Value for u32 {
    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
    fn show(self) -> ParamValue {
        ParamValue::Number(f64::from(self))
    }
}

impl Value for bool {
    fn read(text: &str) -> Option<Self> {
        match text {
            "on" | "true" => Some(true),
            "off" | "false" => Some(false),
            _ => None,
        }
    }
    fn show(self) -> ParamValue {
        ParamValue::Word(if self { "on" } else { "off" })
    }
}

impl Value for Span {
    fn read(text: &str) -> Option<Self> {
        let (number, unit) = [("ms", 1_000_000), ("us", 1000), ("s", 1_000_000_000)]
            .iter()
            .find_map(|(suffix, ns)| text.strip_suffix(suffix).map(|n| (n, *ns)))?;
        let n = u64::try_from(Fixed::parse(number)?.0).ok()?;
        Some(Self(n.checked_mul(unit)? / Fixed::ONE as u64))
    }
    fn show(self) -> ParamValue {
        ParamValue::Number(self.as_secs_f64())
    }
}

/// Why setting a parameter failed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ParamError {
    /// There is no such parameter. Contains the names that exist.
    Unknown(&'static [&'static str]),
    /// The value is not valid. Contains a description of valid values.
    Value(&'static str),
}

/// The parameters of one algorithm.
pub trait Parameters {
    /// Sets the parameter `key` from text.
    ///
    /// # Errors
    /// If there is no such parameter or the value is not valid; `self` is then unchanged.
    fn set(&mut self, key: &str, value: &str) -> Result<(), ParamError>;
    /// Calls `put` with name and value of each parameter, in order of declaration.
    fn each(&self, put: &mut dyn FnMut(&'static str, ParamValue));
}

/// Declares a parameter struct. Each field has a default, a description of its valid values and a check.
macro_rules! params {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$fmeta:meta])* $field:ident: $ty:ty = $default:expr, $expected:literal, |$v:ident| $check:expr;)*
    }) => {
        $(#[$meta])*
        #[derive(Copy, Clone, Debug)]
        #[non_exhaustive]
        pub struct $name { $($(#[$fmeta])* pub $field: $ty,)* }
        impl Default for $name {
            fn default() -> Self { Self { $($field: $default,)* } }
        }
        impl $crate::param::Parameters for $name {
            #[allow(unused_variables, reason = "some have none")]
            fn set(&mut self, key: &str, value: &str) -> Result<(), $crate::param::ParamError> {
                $(if key == stringify!($field) {
                    let read = <$ty as $crate::param::Value>::read(value).filter(|&$v| $check);
                    self.$field = read.ok_or($crate::param::ParamError::Value($expected))?;
                    return Ok(());
                })*
                Err($crate::param::ParamError::Unknown(&[$(stringify!($field)),*]))
            }
            #[allow(unused_variables, reason = "some have none")]
            fn each(&self, put: &mut dyn FnMut(&'static str, $crate::param::ParamValue)) {
                $(put(stringify!($field), $crate::param::Value::show(self.$field));)*
            }
        }
    };
}

/// Declares a parameter type with a fixed set of words as values.
macro_rules! choice {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$vmeta:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Copy, Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $name { $($(#[$vmeta])* $variant),* }
        impl $crate::param::Value for $name {
            fn read(text: &str) -> Option<Self> {
                match text { $($word => Some(Self::$variant),)* _ => None }
            }
            fn show(self) -> $crate::param::ParamValue {
                $crate::param::ParamValue::Word(match self { $(Self::$variant => $word),* })
            }
        }
    };
}
pub(crate) use {choice, params};

#[cfg(test)]
#[allow(unreachable_pub, reason = "the macro declares what is public elsewhere")]
mod tests {
    use super::*;

    params! {
        /// Parameters for the tests.
        pub struct P {
            /// A share.
            share: Fixed = Fixed::milli(260), "a share from 0 to 1", |v| (0..=Fixed::ONE).contains(&v.0);
            /// A time.
            floor: Span = Span::millis(4), "a time such as 4ms", |_v| true;
        }
    }

    #[test]
    fn sets_checks_and_shows() {
        let mut p = P::default();
        assert_eq!(p.set("share", "0.5"), Ok(()));
        assert_eq!(p.set("share", "1.5"), Err(ParamError::Value("a share from 0 to 1")));
        assert_eq!(p.set("shape", "1"), Err(ParamError::Unknown(&["share", "floor"])));
        assert_eq!(p.set("floor", "2.5ms"), Ok(()));
        assert_eq!(p.set("floor", "2.5"), Err(ParamError::Value("a time such as 4ms")));
        let mut seen = std::vec::Vec::new();
        p.each(&mut |k, v| seen.push((k, v)));
        assert_eq!(seen, [("share", ParamValue::Number(0.5)), ("floor", ParamValue::Number(0.0025))]);
    }
}
