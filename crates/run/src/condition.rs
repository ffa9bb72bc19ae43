//! The answer of a condition task.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// `op` of a condition task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Operator {
    /// The same text: `"12.0"` is not `"12"`.
    EqualTo,
    /// Another text.
    NotEqual,
    /// As numbers.
    GreaterThan,
    /// As numbers.
    GreaterThanOrEqual,
    /// As numbers.
    LessThan,
    /// As numbers.
    LessThanOrEqual,
}

/// An operand that is no number where one is needed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{side} operand {text:?} is no number, which this comparison needs")]
pub struct NoNumber {
    /// `left` or `right`.
    pub side: &'static str,
    /// What it is.
    pub text: String,
}

/// Compares two operands whose references are resolved: texts for equality, numbers for order.
///
/// # Errors
/// When numbers are needed and an operand is none.
pub fn evaluate(operator: Operator, left: &str, right: &str) -> Result<bool, NoNumber> {
    let numbers = || Ok((number("left", left)?, number("right", right)?));
    Ok(match operator {
        Operator::EqualTo => left == right,
        Operator::NotEqual => left != right,
        Operator::GreaterThan => numbers().map(|(a, b)| a > b)?,
        Operator::GreaterThanOrEqual => numbers().map(|(a, b)| a >= b)?,
        Operator::LessThan => numbers().map(|(a, b)| a < b)?,
        Operator::LessThanOrEqual => numbers().map(|(a, b)| a <= b)?,
    })
}

fn number(side: &'static str, text: &str) -> Result<f64, NoNumber> {
    let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| NoNumber { side, text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_for_equality_and_numbers_for_order() {
        use Operator::{EqualTo, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual, NotEqual};
        for (operator, left, right, answer) in [
            (EqualTo, "12.0", "12", Some(false)),
            (EqualTo, "true", "true", Some(true)),
            (NotEqual, "a", "b", Some(true)),
            (GreaterThan, "12.0", "12", Some(false)),
            (GreaterThanOrEqual, "12.0", "12", Some(true)),
            (LessThan, "9", "10", Some(true)),
            (LessThanOrEqual, "-1e3", "0", Some(true)),
            (LessThan, "nine", "10", None),
            (LessThan, "1", "NaN", None),
            (GreaterThan, "", "0", None),
        ] {
            assert_eq!(evaluate(operator, left, right).ok(), answer, "{left} {operator:?} {right}");
        }
        let error = evaluate(GreaterThan, "many", "0").unwrap_err();
        assert_eq!(error.to_string(), "left operand \"many\" is no number, which this comparison needs");
    }
}
