//! Reading expressions of a plan: conditions into conjuncts, names without ids.
//!
//! Spark prints literals without quotes, so brackets need not balance; nothing here fails.

/// Items between top-level commas, trimmed.
#[must_use]
pub fn split(text: &str) -> Vec<&str> {
    split_at(text, ",")
}

/// The parts of a condition that must all hold.
#[must_use]
pub fn conjuncts(condition: &str) -> Vec<&str> {
    parts(condition, " AND ")
}

/// The parts of a condition of which one must hold.
#[must_use]
pub fn disjuncts(condition: &str) -> Vec<&str> {
    parts(condition, " OR ")
}

/// Conditions of a thousand parts nest a thousand brackets, so this keeps its own stack.
fn parts<'t>(condition: &'t str, word: &str) -> Vec<&'t str> {
    let mut found = Vec::new();
    let mut open = vec![unwrapped(condition)];
    let mut whole = true;
    while let Some(part) = open.pop() {
        let inner = split_at(unwrapped(part), word);
        match inner.len() {
            0 | 1 => found.push(if whole { unwrapped(part) } else { part.trim() }),
            _ => open.extend(inner.into_iter().rev()),
        }
        whole = false;
    }
    found
}

/// Without the brackets around the whole.
#[must_use]
pub fn unwrapped(mut text: &str) -> &str {
    loop {
        text = text.trim();
        let Some(inner) = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) else { return text };
        let mut depth = 0_i32;
        let closed = inner.bytes().all(|byte| {
            depth += i32::from(byte == b'(') - i32::from(byte == b')');
            depth >= 0
        });
        if !closed || depth != 0 {
            return text;
        }
        text = inner;
    }
}

fn split_at<'t>(text: &'t str, word: &str) -> Vec<&'t str> {
    let (mut depth, mut begin, mut parts) = (0, 0, Vec::new());
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ if depth == 0 && bytes[at..].starts_with(word.as_bytes()) => {
                parts.push(text[begin..at].trim());
                begin = at + word.len();
                at = begin - 1;
            }
            _ => {}
        }
        at += 1;
    }
    parts.push(text[begin..].trim());
    parts.retain(|p| !p.is_empty());
    parts
}

/// Names of the columns that an expression speaks of: words with an id behind them.
#[must_use]
pub fn columns(expression: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (hash, _) in expression.match_indices('#') {
        let word = |c: char| !(c.is_alphanumeric() || c == '_' || c == '.' || c == '-');
        let begin =
            expression[..hash].rfind(word).map_or(0, |n| n + expression[n..].chars().next().map_or(1, char::len_utf8));
        let name = &expression[begin..hash];
        let has_id = expression[hash + 1..].starts_with(|c: char| c.is_ascii_digit());
        let special = matches!(name, "" | "dynamicpruning" | "subquery" | "scalar-subquery" | "exists");
        if has_id && !special && !found.iter().any(|f| f == name) {
            found.push(name.to_owned());
        }
    }
    found
}

/// Without the ids that Spark puts behind names: `order_id#7L` becomes `order_id`.
#[must_use]
pub fn without_ids(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(hash) = rest.find('#') {
        let after = &rest[hash + 1..];
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        out.push_str(&rest[..hash]);
        if digits == 0 {
            out.push('#');
        }
        rest = after[digits..].strip_prefix('L').filter(|_| digits > 0).unwrap_or(&after[digits..]);
    }
    out.push_str(rest);
    out
}

/// Without what ties the parts of a plan's text together: `Subquery subquery#9, [id=#12]` becomes
/// `subquery`.
#[must_use]
pub fn without_links(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(", [id=#") {
        out.push_str(&rest[..at]);
        rest = rest[at..].split_once(']').map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    out.replace("ReusedSubquery Subquery ", "")
        .replace("Subquery subquery#", "subquery#")
        .replace("Subquery scalar-subquery#", "subquery#")
}

/// Whether a condition only says that something is not NULL, which Spark adds by itself; as a
/// condition of the plan or as a filter of a source.
#[must_use]
pub fn is_not_null_only(conjunct: &str) -> bool {
    let text = unwrapped(conjunct.trim_start_matches('*')).to_ascii_lowercase();
    text.starts_with("isnotnull(") || text.starts_with("isnotnull ") || text.ends_with(" is not null")
}

/// Whether a condition was added by Spark while running: nobody wrote it.
#[must_use]
pub fn is_runtime_filter(conjunct: &str) -> bool {
    ["dynamicpruning", "might_contain(", "bloom_filter"].iter().any(|word| conjunct.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_fall_into_parts() {
        for (condition, parts) in [
            ("((isnotnull(a#1) AND (a#1 > 5)) AND (b#2 = x))", vec!["isnotnull(a#1)", "(a#1 > 5)", "(b#2 = x)"]),
            ("isnotnull(a#1)", vec!["isnotnull(a#1)"]),
            ("((a#1 = 1) OR (b#2 = 2))", vec!["(a#1 = 1) OR (b#2 = 2)"]),
            ("((a = x) AND (b = O'Hare))", vec!["(a = x)", "(b = O'Hare)"]),
        ] {
            assert_eq!(conjuncts(condition), parts, "{condition}");
        }
        let many = format!("{}a#1{}", "(".repeat(50_000), " AND b#2)".repeat(50_000));
        assert_eq!(unwrapped(&many).len(), many.len() - 2);
        assert_eq!(disjuncts("((a#1 = b#2) OR (isnull(a#1) AND isnull(b#2)))").len(), 2);
    }

    #[test]
    fn names_lose_their_ids() {
        assert_eq!(columns("(cast(created_at#2 as string) >= 2025-01-01)"), ["created_at"]);
        assert_eq!(columns("dynamicpruningexpression(dt#3 IN dynamicpruning#86)"), ["dt"]);
        assert_eq!(without_ids("(a#1L = b#2) AND c#"), "(a = b) AND c#");
        let subquery = "(amount#3 > Subquery subquery#9, [id=#12])";
        assert_eq!(without_ids(&without_links(subquery)), "(amount > subquery)");
    }
}
