//! The mutants of a file, and the file with each behind a switch.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, Lit, Member, Stmt, UnOp};

/// A change of one expression.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mutant {
    pub(crate) file: String,
    pub(crate) line: usize,
    /// The text of that line.
    pub(crate) source: String,
    /// Where the expression begins and ends, in bytes.
    range: (usize, usize),
    pub(crate) from: String,
    pub(crate) to: String,
}

/// A mutant in the copy.
pub(crate) struct Planted {
    pub(crate) id: u32,
    pub(crate) mutant: Mutant,
    /// The line of its text in the copy.
    pub(crate) at_line: u64,
}

/// Functions that no vector shows: traces, names, and what a host asks before it calls.
const UNSEEN: [&str; 9] = [
    "phase",
    "internal_values",
    "has_exit_rule",
    "uses_path_memory",
    "needs_on_sent",
    "needs_delivery_state",
    "fmt",
    "read",
    "show",
];

struct Finder<'a> {
    file: &'a str,
    text: &'a str,
    found: Vec<Mutant>,
}

impl Finder<'_> {
    fn source(&self, node: &impl Spanned) -> &str {
        &self.text[node.span().byte_range()]
    }

    fn add(&mut self, node: &impl Spanned, to: &str) {
        let (range, line) = (node.span().byte_range(), node.span().start().line);
        let from = self.text[range.clone()].split_whitespace().collect::<Vec<_>>().join(" ");
        let mutant = Mutant {
            file: self.file.into(),
            line,
            source: self.text.lines().nth(line - 1).unwrap_or_default().trim().into(),
            range: (range.start, range.end),
            from,
            to: to.replace('\n', " "),
        };
        if !self.found.contains(&mutant) {
            self.found.push(mutant);
        }
    }

    fn number(&mut self, lit: &syn::LitInt) {
        let Ok(n) = lit.base10_parse::<u128>() else { return };
        let step = if n < 100 { 1 } else { n / 10 };
        self.add(lit, &format!("{}{}", n + step, lit.suffix()));
        if n > 0 {
            self.add(lit, &format!("{}{}", n - step, lit.suffix()));
        }
    }

    /// The defaults in `params!`: what stands between the first `=` and the comma of a field.
    fn defaults(&mut self, tokens: TokenStream) {
        let (mut within, mut seen) = (false, false);
        for token in tokens {
            match token {
                TokenTree::Punct(p) if p.as_char() == '=' && !seen => (within, seen) = (true, true),
                TokenTree::Punct(p) if p.as_char() == ',' => within = false,
                TokenTree::Punct(p) if p.as_char() == ';' => (within, seen) = (false, false),
                TokenTree::Group(g) if within => self.literals(g.stream()),
                TokenTree::Group(g) if !seen => self.defaults(g.stream()),
                TokenTree::Literal(_) | TokenTree::Ident(_) if within => self.literals(token.into()),
                _ => {}
            }
        }
    }

    fn literals(&mut self, tokens: TokenStream) {
        for token in tokens {
            match &token {
                TokenTree::Literal(l) => {
                    if let Lit::Int(n) = Lit::new(l.clone()) {
                        self.number(&n);
                    }
                }
                TokenTree::Ident(i) if i == "true" => self.add(i, "false"),
                TokenTree::Ident(i) if i == "false" => self.add(i, "true"),
                _ => {}
            }
        }
    }

    fn binary(&mut self, e: &syn::ExprBinary) {
        let (a, b) = (self.source(&e.left).to_string(), self.source(&e.right).to_string());
        let ops: &[&str] = match e.op {
            BinOp::Add(_) => &["-"],
            BinOp::Sub(_) => &["+"],
            BinOp::Mul(_) | BinOp::Rem(_) => &["/"],
            BinOp::Div(_) => &["*"],
            BinOp::Shl(_) => &[">>"],
            BinOp::Shr(_) => &["<<"],
            BinOp::Lt(_) => &["<=", ">="],
            BinOp::Le(_) => &["<", ">"],
            BinOp::Gt(_) => &[">=", "<="],
            BinOp::Ge(_) => &[">", "<"],
            BinOp::Eq(_) => &["!="],
            BinOp::Ne(_) => &["=="],
            BinOp::And(_) => &["||"],
            BinOp::Or(_) => &["&&"],
            _ => &[],
        };
        for op in ops {
            self.add(e, &format!("({a}) {op} ({b})"));
        }
        if matches!(e.op, BinOp::And(_) | BinOp::Or(_)) {
            self.add(e, &a);
            self.add(e, &b);
        }
    }

    fn method(&mut self, e: &syn::ExprMethodCall) {
        let receiver = self.source(&e.receiver).to_string();
        let args: Vec<String> = e.args.iter().map(|a| self.source(a).to_string()).collect();
        let other = match e.method.to_string().as_str() {
            "min" => Some("max"),
            "max" => Some("min"),
            "is_some" => Some("is_none"),
            "is_none" => Some("is_some"),
            "is_some_and" => Some("is_none_or"),
            "is_none_or" => Some("is_some_and"),
            _ => None,
        };
        if let Some(other) = other {
            self.add(e, &format!("({receiver}).{other}({})", args.join(", ")));
        }
        match (e.method.to_string().as_str(), args.as_slice()) {
            ("min" | "max" | "filter", _) => self.add(e, &receiver),
            ("scale", [a, b]) => self.add(e, &format!("({receiver}).scale({b}, {a})")),
            _ => {}
        }
    }

    /// One field of what the host tells in place of another.
    fn field(&mut self, e: &syn::ExprField) {
        let (Expr::Path(base), Member::Named(name)) = (&*e.base, &e.member) else { return };
        let base = self.source(base).to_string();
        let to = match (base.as_str(), name.to_string().as_str()) {
            ("ack" | "a", "bytes" | "prior_inflight") | ("v" | "f", "inflight") => "delivered",
            ("ack" | "a", "delivered") => "bytes",
            ("ack" | "a", "upto") => "newest.mark",
            ("v" | "f", "min_rtt") => "srtt",
            ("v" | "f", "srtt") => "min_rtt",
            ("v" | "f", "delivered") => "lost",
            ("v" | "f", "iw") => "mss",
            ("v" | "f", "cwnd") => "inflight",
            ("v" | "f", "mss") => {
                self.add(e, "crate::units::Bytes(1460)");
                return;
            }
            _ => return,
        };
        self.add(e, &format!("{base}.{to}"));
    }
}

/// True if an expression has a `let` of a condition.
fn has_let(e: &Expr) -> bool {
    match e {
        Expr::Let(_) => true,
        Expr::Binary(b) => has_let(&b.left) || has_let(&b.right),
        Expr::Paren(p) => has_let(&p.expr),
        _ => false,
    }
}

fn is_test(attrs: &[syn::Attribute]) -> bool {
    attrs.iter().any(|a| a.path().is_ident("cfg"))
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, m: &'ast syn::ItemMod) {
        if !is_test(&m.attrs) {
            visit::visit_item_mod(self, m);
        }
    }

    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_item_fn(&mut self, f: &'ast syn::ItemFn) {
        if f.sig.constness.is_none() {
            visit::visit_item_fn(self, f);
        }
    }

    fn visit_impl_item_fn(&mut self, f: &'ast syn::ImplItemFn) {
        if f.sig.constness.is_none() && !UNSEEN.contains(&f.sig.ident.to_string().as_str()) {
            visit::visit_impl_item_fn(self, f);
        }
    }

    fn visit_item_macro(&mut self, m: &'ast syn::ItemMacro) {
        if m.mac.path.is_ident("params") {
            self.defaults(m.mac.tokens.clone());
        }
    }

    fn visit_stmt(&mut self, s: &'ast Stmt) {
        if let Stmt::Expr(Expr::Assign(_) | Expr::MethodCall(_) | Expr::Binary(_), Some(_)) = s {
            self.add(s, "");
        }
        visit::visit_stmt(self, s);
    }

    fn visit_expr_assign(&mut self, e: &'ast syn::ExprAssign) {
        self.visit_expr(&e.right);
    }

    fn visit_expr_reference(&mut self, e: &'ast syn::ExprReference) {
        // What is borrowed stays a place.
        if e.mutability.is_none() {
            visit::visit_expr_reference(self, e);
        }
    }

    fn visit_expr_if(&mut self, e: &'ast syn::ExprIf) {
        if !has_let(&e.cond) {
            self.add(&*e.cond, "true");
            self.add(&*e.cond, "false");
        }
        visit::visit_expr_if(self, e);
    }

    fn visit_expr_binary(&mut self, e: &'ast syn::ExprBinary) {
        let assigns = ["+=", "-=", "*=", "/=", "<<=", ">>=", "|=", "&="];
        if assigns.contains(&self.source(&e.op)) {
            self.visit_expr(&e.right);
            return;
        }
        if !has_let(&e.left) && !has_let(&e.right) {
            self.binary(e);
        }
        visit::visit_expr_binary(self, e);
    }

    fn visit_expr_unary(&mut self, e: &'ast syn::ExprUnary) {
        if let UnOp::Not(_) = e.op {
            let inner = self.source(&e.expr).to_string();
            self.add(e, &inner);
        }
        visit::visit_expr_unary(self, e);
    }

    fn visit_expr_method_call(&mut self, e: &'ast syn::ExprMethodCall) {
        self.method(e);
        // A receiver may be a place that is changed.
        if !matches!(&*e.receiver, Expr::Field(_) | Expr::Path(_) | Expr::Index(_)) {
            self.visit_expr(&e.receiver);
        }
        e.args.iter().for_each(|a| self.visit_expr(a));
    }

    fn visit_expr_field(&mut self, e: &'ast syn::ExprField) {
        self.field(e);
    }

    fn visit_expr_index(&mut self, e: &'ast syn::ExprIndex) {
        self.visit_expr(&e.index);
    }

    fn visit_expr_path(&mut self, e: &'ast syn::ExprPath) {
        let name = self.source(e).to_string();
        let last = name.rsplit("::").next().unwrap_or_default();
        let is_constant =
            last.len() > 1 && last.chars().all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit());
        if is_constant && !["ZERO", "MAX", "NEVER", "HOLD", "NONE", "ONE", "BITS", "UNIT"].contains(&last) {
            for change in ["+ 1", "- 1", "* 2", "/ 2"] {
                self.add(e, &format!("{name} {change}"));
            }
        }
    }

    fn visit_expr_call(&mut self, e: &'ast syn::ExprCall) {
        let name = self.source(&e.func).to_string();
        for (from, to) in [
            ("Span::millis", "Span::micros"),
            ("Span::micros", "Span::millis"),
            ("Span::secs", "Span::millis"),
        ] {
            if name == from {
                let args: Vec<&str> = e.args.iter().map(|a| self.source(a)).collect();
                let to = format!("{to}({})", args.join(", "));
                self.add(e, &to);
            }
        }
        e.args.iter().for_each(|a| self.visit_expr(a));
    }

    fn visit_expr_lit(&mut self, e: &'ast syn::ExprLit) {
        match &e.lit {
            Lit::Int(n) => self.number(n),
            Lit::Bool(b) => self.add(b, if b.value { "false" } else { "true" }),
            _ => {}
        }
    }
}

/// Returns the text of a file with each of its mutants behind a switch, numbered from `first`.
pub(crate) fn plant(
    file: &str,
    text: &str,
    first: u32,
    dropped: &BTreeSet<Mutant>,
) -> Result<(String, Vec<Planted>), syn::Error> {
    let parsed = syn::parse_file(text)?;
    let mut finder = Finder { file, text, found: Vec::new() };
    finder.visit_file(&parsed);
    let mut all: BTreeMap<(usize, usize), Vec<Mutant>> = BTreeMap::new();
    for m in finder.found.into_iter().filter(|m| !dropped.contains(m)) {
        // The outer of two that begin at one place comes first.
        all.entry((m.range.0, usize::MAX - m.range.1)).or_default().push(m);
    }
    let mut writer = Writer {
        text,
        all: all.into_values().collect(),
        next: 0,
        out: String::new(),
        lines: 1,
        id: first,
        planted: Vec::new(),
    };
    writer.until(0, text.len());
    Ok((writer.out, writer.planted))
}

struct Writer<'a> {
    text: &'a str,
    /// By begin, the outer before the inner.
    all: Vec<Vec<Mutant>>,
    next: usize,
    out: String,
    lines: u64,
    id: u32,
    planted: Vec<Planted>,
}

impl Writer<'_> {
    fn put(&mut self, text: &str) {
        self.lines += text.matches('\n').count() as u64;
        self.out.push_str(text);
    }

    /// Writes the text from `at` to `end`, with the mutants in it.
    fn until(&mut self, mut at: usize, end: usize) {
        while let Some(here) =
            self.all.get(self.next).filter(|m| m[0].range.1 <= end && m[0].range.0 >= at).cloned()
        {
            self.next += 1;
            let (from, to) = here[0].range;
            self.put(&self.text[at..from]);
            let statement = self.text[from..to].ends_with(';');
            self.put(if statement { "{" } else { "(" });
            for mutant in here {
                self.put("\n");
                let at_line = self.lines;
                self.put(&format!("if crate::mutant::is({}) {{ {} }} else", self.id, mutant.to));
                self.planted.push(Planted { id: self.id, mutant, at_line });
                self.id += 1;
            }
            self.put("\n{ ");
            self.until(from, to);
            self.put(if statement { " }\n}" } else { " })" });
            at = to;
        }
        self.put(&self.text[at..end]);
    }
}
