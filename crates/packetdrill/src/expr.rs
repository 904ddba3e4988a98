//! The code between `%{` and `}%`: assignments, assertions and arithmetic, the part of Python that scripts
//! use.

use std::collections::BTreeMap;

/// The value of a name.
pub type Names = BTreeMap<String, i64>;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(i64),
    Name(String),
    Text,
    Sign(&'static str),
}

const SIGNS: [&str; 24] = [
    "==", "!=", "<=", ">=", "//", "+=", "-=", "*=", "<", ">", "+", "-", "*", "/", "%", "(", ")", ",", "=",
    "&", "|", "[", "]", ":",
];

/// Runs statements. `names` holds the fields of `tcp_info` and receives the assigned values.
///
/// # Errors
/// The first assertion that does not hold, with the values of its names, or the text that cannot be parsed.
pub fn run(code: &str, names: &mut Names) -> Result<(), String> {
    let joined = code.replace("\\\n", " ");
    for line in joined.lines() {
        let line = line.split('#').next().unwrap_or(line);
        for statement in line.split(';').map(str::trim).filter(|s| !s.is_empty()) {
            self::statement(statement, names)?;
        }
    }
    Ok(())
}

fn statement(text: &str, names: &mut Names) -> Result<(), String> {
    let tokens = tokens(text)?;
    // Each level of nesting uses one token and one stack frame.
    if tokens.len() > 500 {
        return Err("expected a shorter statement".to_owned());
    }
    let mut p = Parser { tokens: &tokens, at: 0, names };
    match tokens.as_slice() {
        [Token::Name(n), ..] if n == "assert" => {
            p.at = 1;
            if p.or()? != 0 {
                return Ok(());
            }
            let mut said: Vec<String> = Vec::new();
            for t in &tokens[1..p.at] {
                if let Token::Name(n) = t
                    && let Some(v) = p.names.get(n)
                {
                    let s = format!("{n} = {v}");
                    if !said.contains(&s) {
                        said.push(s);
                    }
                }
            }
            return Err(format!("expected {}, seen {}", &text["assert".len()..].trim(), said.join(", ")));
        }
        [Token::Name(n), Token::Sign("("), ..] if n == "print" => return Ok(()),
        [Token::Name(n), Token::Sign(op @ ("=" | "+=" | "-=" | "*=")), ..] => {
            p.at = 2;
            let value = p.or()?;
            p.end(text)?;
            let old = || names.get(n).copied().ok_or_else(|| format!("expected a name, found `{n}`"));
            let new = match *op {
                "+=" => old()?.checked_add(value),
                "-=" => old()?.checked_sub(value),
                "*=" => old()?.checked_mul(value),
                _ => Some(value),
            };
            names.insert(n.clone(), new.ok_or("arithmetic leaves 64 bits")?);
            return Ok(());
        }
        _ => {}
    }
    Err(format!("expected assert, print or an assignment, found `{text}`"))
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(c) = rest.chars().next() {
        let n = if c.is_ascii_digit() {
            let n = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            let number = match rest[..n].strip_prefix("0x") {
                Some(hex) => i64::from_str_radix(hex, 16),
                None => rest[..n].parse(),
            };
            found.push(Token::Number(
                number.map_err(|_| format!("expected a number, found `{}`", &rest[..n]))?,
            ));
            n
        } else if c.is_ascii_alphabetic() || c == '_' {
            let n = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            found.push(Token::Name(rest[..n].to_owned()));
            n
        } else if c == '\'' || c == '"' {
            found.push(Token::Text);
            2 + rest[1..].find(c).ok_or("expected the end of a string")?
        } else {
            let sign = SIGNS.iter().find(|s| rest.starts_with(**s));
            let sign = sign.ok_or_else(|| format!("expected an operator, found `{c}`"))?;
            found.push(Token::Sign(sign));
            sign.len()
        };
        rest = rest[n..].trim_start();
    }
    Ok(found)
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    names: &'a Names,
}

impl Parser<'_> {
    fn sign(&mut self, of: &[&'static str]) -> Option<&'static str> {
        match self.tokens.get(self.at) {
            Some(Token::Sign(s)) if of.contains(s) => {
                self.at += 1;
                Some(s)
            }
            _ => None,
        }
    }

    fn keyword(&mut self, word: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Name(n)) if n == word);
        self.at += usize::from(found);
        found
    }

    fn end(&self, text: &str) -> Result<(), String> {
        if self.at == self.tokens.len() { Ok(()) } else { Err(format!("expected the end in `{text}`")) }
    }

    fn or(&mut self) -> Result<i64, String> {
        let mut a = self.and()?;
        while self.keyword("or") {
            let b = self.and()?;
            a = if a == 0 { b } else { a };
        }
        Ok(a)
    }

    fn and(&mut self) -> Result<i64, String> {
        let mut a = self.not()?;
        while self.keyword("and") {
            let b = self.not()?;
            a = if a == 0 { a } else { b };
        }
        Ok(a)
    }

    fn not(&mut self) -> Result<i64, String> {
        if self.keyword("not") { Ok(i64::from(self.not()? == 0)) } else { self.compare() }
    }

    /// A chained comparison as in Python: `a <= b <= c`.
    fn compare(&mut self) -> Result<i64, String> {
        let mut a = self.sum()?;
        let mut holds = None;
        while let Some(op) = self.sign(&["==", "!=", "<=", ">=", "<", ">"]) {
            let b = self.sum()?;
            let one = match op {
                "==" => a == b,
                "!=" => a != b,
                "<=" => a <= b,
                ">=" => a >= b,
                "<" => a < b,
                _ => a > b,
            };
            holds = Some(holds.unwrap_or(true) && one);
            a = b;
        }
        Ok(holds.map_or(a, i64::from))
    }

    fn sum(&mut self) -> Result<i64, String> {
        let mut a = self.product()?;
        while let Some(op) = self.sign(&["+", "-"]) {
            let b = self.product()?;
            a = if op == "+" { a.checked_add(b) } else { a.checked_sub(b) }
                .ok_or("arithmetic leaves 64 bits")?;
        }
        Ok(a)
    }

    fn product(&mut self) -> Result<i64, String> {
        let mut a = self.atom()?;
        while let Some(op) = self.sign(&["*", "//", "/", "%"]) {
            let b = self.atom()?;
            a = match op {
                "*" => a.checked_mul(b),
                "%" => a.checked_rem_euclid(b),
                _ => a.checked_div_euclid(b),
            }
            .ok_or("arithmetic leaves 64 bits, or divides by zero")?;
        }
        Ok(a)
    }

    fn atom(&mut self) -> Result<i64, String> {
        if self.sign(&["-"]).is_some() {
            return self.atom()?.checked_neg().ok_or_else(|| "arithmetic leaves 64 bits".to_owned());
        }
        if self.sign(&["("]).is_some() {
            let a = self.or()?;
            return self.sign(&[")"]).map(|_| a).ok_or_else(|| "expected `)`".to_owned());
        }
        let token = self.tokens.get(self.at);
        self.at += 1;
        match token {
            Some(Token::Number(n)) => Ok(*n),
            Some(Token::Name(n)) => {
                self.names.get(n).copied().ok_or_else(|| format!("`{n}` is not modelled, or not assigned"))
            }
            _ => Err("expected a number or a name".to_owned()),
        }
    }
}
