//! Parameters: a public struct with the source's defaults, written `name:key=value,key=value` wherever a person writes.

use crate::units::{Fixed, Span};

/// A parameter's value, for results and listings.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum ParamValue {
    /// A number; spans are in seconds.
    Number(f64),
    /// A word: `on`, `off` or a choice.
    Word(&'static str),
}

/// A type that can be a parameter.
pub trait Value: Sized + Copy {
    /// Reads what a person wrote.
    fn read(text: &str) -> Option<Self>;
    /// For results and listings.
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

/// Why a parameter was refused.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ParamError {
    /// There is no such parameter; these there are.
    Unknown(&'static [&'static str]),
    /// The value does not fit; this was expected.
    Value(&'static str),
}

/// A set of parameters.
pub trait Parameters {
    /// Sets one from what a person wrote.
    fn set(&mut self, key: &str, value: &str) -> Result<(), ParamError>;
    /// Shows each, in order of declaration.
    fn each(&self, put: &mut dyn FnMut(&'static str, ParamValue));
}

/// No parameters.
#[derive(Copy, Clone, Debug, Default)]
pub struct NoParams;

impl Parameters for NoParams {
    fn set(&mut self, _: &str, _: &str) -> Result<(), ParamError> {
        Err(ParamError::Unknown(&[]))
    }
    fn each(&self, _: &mut dyn FnMut(&'static str, ParamValue)) {}
}

/// Declares a parameter struct: each field with its default, what is expected of it in words, and a check.
macro_rules! params {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$fmeta:meta])* $field:ident: $ty:ty = $default:expr, $expected:literal, |$v:ident| $check:expr;)*
    }) => {
        $(#[$meta])*
        #[derive(Copy, Clone, Debug)]
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

/// Declares a parameter that is one of a few words.
macro_rules! choice {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$vmeta:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Copy, Clone, Debug, PartialEq, Eq)]
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
        /// For the tests.
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
