//! Computed attributes: values that a logbook makes from other attributes of the same entry.
//!
//! A rule that begins with `=` is arithmetic: `= round($Voltage * $Current / 1000, 2)`. It has numbers, `+ - * /`,
//! parentheses, and the functions `abs(a)`, `round(a)`, `round(a, digits)`, `min(a, b)` and `max(a, b)`. Any other rule is
//! a text in which names stand for values: `${Run number}-$Type`. Names refer to attributes before the computed one. If
//! a number is missing or is none, or a division is by zero, the result is empty.

/// Bytes of a rule.
const MAX_RULE: usize = 1000;
/// Depth of nested parentheses.
const MAX_DEPTH: usize = 50;

/// A function of arithmetic rules: its name, and the smallest and largest number of its arguments.
type Function = (&'static str, usize, usize);

const FUNCTIONS: [Function; 4] = [("abs", 1, 1), ("round", 1, 2), ("min", 2, 2), ("max", 2, 2)];

/// Checks a rule; `is_known` says which names it can refer to. An empty rule is none.
pub fn check(rule: &str, is_known: &dyn Fn(&str) -> bool) -> Result<(), String> {
    if rule.len() > MAX_RULE {
        return Err(format!("it has more than {MAX_RULE} bytes"));
    }
    let known = |name: &str| match is_known(name) {
        true => Ok(Some(String::new())),
        false => Err(format!("there is no attribute '{name}' before it")),
    };
    value(rule, &known).map(|_| ())
}

/// Returns the value of a rule that was checked, with the values of these attributes.
pub fn computed(rule: &str, of: &dyn Fn(&str) -> Option<String>) -> String {
    value(rule, &|name| Ok(of(name))).unwrap_or_default().replace(['\r', '\n', '\0'], " ").trim().to_owned()
}

fn number(value: &str) -> Option<f64> {
    value.trim().parse::<f64>().ok().filter(|number| number.is_finite())
}

/// Returns the value of an attribute, or an error for an unknown one.
type ValueOf<'a> = &'a dyn Fn(&str) -> Result<Option<String>, String>;

fn value(rule: &str, of: ValueOf<'_>) -> Result<String, String> {
    if let Some(rest) = rule.strip_prefix('=') {
        let mut reader = Reader { rest, of, depth: 0 };
        let result = reader.sum()?;
        if !reader.rest.trim_start().is_empty() {
            return Err(format!("'{}' cannot follow here", reader.rest.trim()));
        }
        return Ok(result.filter(|number| number.is_finite()).map(written).unwrap_or_default());
    }
    let (mut out, mut rest) = (String::new(), rule);
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match name(rest)? {
            Some((name, after)) => {
                out.push_str(&of(name)?.unwrap_or_default());
                rest = after;
            }
            None => out.push('$'),
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// Writes a number without the noise of its last digits.
fn written(number: f64) -> String {
    let text = format!("{number:.9}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0".to_owned() } else { short.to_owned() }
}

/// Reads a name after `$`: a word, or anything in braces. Returns the name and the rest.
fn name(text: &str) -> Result<Option<(&str, &str)>, String> {
    if let Some(inner) = text.strip_prefix('{') {
        return inner.split_once('}').map(Some).ok_or_else(|| "a '}' is missing".to_owned());
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    Ok((end > 0).then(|| text.split_at(end)))
}

/// The reader of an arithmetic rule. A missing number makes the whole result missing.
struct Reader<'a> {
    rest: &'a str,
    of: ValueOf<'a>,
    depth: usize,
}

impl Reader<'_> {
    fn sum(&mut self) -> Result<Option<f64>, String> {
        let mut sum = self.product()?;
        loop {
            let sign = if self.takes('+') {
                1.0
            } else if self.takes('-') {
                -1.0
            } else {
                return Ok(sum);
            };
            let next = self.product()?;
            sum = sum.zip(next).map(|(a, b)| a + sign * b);
        }
    }

    fn product(&mut self) -> Result<Option<f64>, String> {
        let mut product = self.factor()?;
        loop {
            let divides = if self.takes('*') {
                false
            } else if self.takes('/') {
                true
            } else {
                return Ok(product);
            };
            let next = self.factor()?;
            product = product.zip(next).map(|(a, b)| if divides { a / b } else { a * b });
        }
    }

    fn factor(&mut self) -> Result<Option<f64>, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("parentheses nest more than {MAX_DEPTH} deep"));
        }
        let result = self.operand();
        self.depth -= 1;
        result
    }

    fn operand(&mut self) -> Result<Option<f64>, String> {
        if self.takes('-') {
            return Ok(self.factor()?.map(|number| -number));
        }
        if self.takes('(') {
            let inner = self.sum()?;
            return if self.takes(')') { Ok(inner) } else { Err("a ')' is missing".to_owned()) };
        }
        if self.takes('$') {
            let (name, rest) = name(self.rest)?.ok_or_else(|| "a name is missing after '$'".to_owned())?;
            self.rest = rest;
            return Ok((self.of)(name)?.and_then(|value| number(&value)));
        }
        let length = |of: &dyn Fn(char) -> bool, text: &str| text.find(|c| !of(c)).unwrap_or(text.len());
        let word = length(&|c| c.is_ascii_alphabetic(), self.rest);
        if word > 0 {
            return self.function(word);
        }
        let digits = length(&|c| c.is_ascii_digit() || c == '.', self.rest);
        let (text, rest) = self.rest.split_at(digits);
        let wrong = || match self.rest.chars().next() {
            Some(other) => format!("a number, a name or '(' is missing before '{other}'"),
            None => "a number, a name or '(' is missing at its end".to_owned(),
        };
        let number = text.parse::<f64>().map_err(|_| wrong())?;
        self.rest = rest;
        Ok(Some(number))
    }

    fn function(&mut self, word: usize) -> Result<Option<f64>, String> {
        let (called, rest) = self.rest.split_at(word);
        let names = || FUNCTIONS.map(|(name, ..)| name).join(", ");
        let known = FUNCTIONS.iter().find(|(name, ..)| *name == called);
        let (_, least, most) = known.ok_or_else(|| format!("there is no function '{called}'; there are: {}", names()))?;
        self.rest = rest;
        if !self.takes('(') {
            return Err(format!("a '(' is missing after '{called}'"));
        }
        let mut given = vec![self.sum()?];
        while self.takes(',') {
            given.push(self.sum()?);
        }
        if !self.takes(')') {
            return Err(format!("a ')' is missing after '{called}('"));
        }
        if !(*least..=*most).contains(&given.len()) {
            return Err(format!("'{called}' has {} arguments", given.len()));
        }
        let Some(given) = given.into_iter().collect::<Option<Vec<f64>>>() else { return Ok(None) };
        Ok(match (called, given.as_slice()) {
            ("abs", [a]) => Some(a.abs()),
            ("round", [a]) => Some(a.round()),
            ("round", [a, digits]) => {
                let scale = 10f64.powi(digits.clamp(0.0, 9.0) as i32);
                Some((a * scale).round() / scale)
            }
            ("min", [a, b]) => Some(a.min(*b)),
            ("max", [a, b]) => Some(a.max(*b)),
            _ => None,
        })
    }

    /// Skips blanks, and this character if it is next.
    fn takes(&mut self, wanted: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(name: &str) -> Result<Option<String>, String> {
        match name {
            "U" => Ok(Some("400".to_owned())),
            "I" => Ok(Some("2.5".to_owned())),
            "Run number" => Ok(Some("7".to_owned())),
            "Type" => Ok(Some("HV".to_owned())),
            "Nothing" => Ok(None),
            other => Err(format!("there is no attribute '{other}' before it")),
        }
    }

    #[test]
    fn rules_have_values() {
        for (rule, expected) in [
            ("= $U * $I", "1000"),
            ("= ($U + 1) / -2", "-200.5"),
            ("= 0.1 + 0.2", "0.3"),
            ("=round(${Run number} / 3, 2) + max(1, abs(-2))", "4.33"),
            ("= 1 / 0", ""),
            ("= $Nothing + 1", ""),
            ("= $Type + 1", ""),
            ("${Run number}-$Type: $5 $", "7-HV: "),
            ("plain", "plain"),
            ("", ""),
        ] {
            // `$5` is a name like any other, which is unknown.
            match value(rule, &of) {
                Ok(made) => assert_eq!(made, expected, "{rule}"),
                Err(why) => assert!(rule.contains("$5") && why.contains("'5'"), "{rule}: {why}"),
            }
        }
    }

    #[test]
    fn wrong_rules_are_told() {
        for (rule, expected) in [
            ("= 1 +", "missing at its end"),
            ("= (1", "')' is missing"),
            ("= 1 2", "'2' cannot follow"),
            ("= $Other", "no attribute 'Other'"),
            ("$Other", "no attribute 'Other'"),
            ("${Type", "'}' is missing"),
            ("= sin(1)", "no function 'sin'; there are: abs, round, min, max"),
            ("= min(1)", "'min' has 1 arguments"),
            ("= * 2", "missing before '*'"),
        ] {
            let why = value(rule, &of).unwrap_err();
            assert!(why.contains(expected), "{rule}: {why}");
        }
        assert!(value(&format!("={}1{}", "(".repeat(400), ")".repeat(400)), &of).unwrap_err().contains("nest"));
    }

    proptest! {
        #[test]
        fn any_rule_is_read(rule in "=?[-+*/(),.$ {}a-z0-9]{0,60}|\\PC{0,40}") {
            let _ = value(&rule, &of);
        }
    }
}
