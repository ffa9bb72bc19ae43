//! `str(query.lastProgress)`: a Python dictionary, and JSON with `NaN`.

/// Turns the literal at the start of a text into JSON; its length in bytes with it. `None` when
/// its brackets never close.
pub(super) fn to_json(text: &str) -> Option<(String, usize)> {
    // Python's own classes print in round brackets; only dictionaries and lists are read.
    let mut json = String::new();
    let mut depth = 0_usize;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.checked_sub(1)?,
            '"' | '\'' => {
                copy_string(c, &mut chars, &mut json)?;
                continue;
            }
            c if c.is_ascii_alphabetic() => {
                let mut word = String::from(c);
                while let Some((_, next)) = chars.next_if(|(_, next)| next.is_ascii_alphanumeric()) {
                    word.push(next);
                }
                json.push_str(word_as_json(&word)?);
                continue;
            }
            _ => {}
        }
        json.push(c);
        if depth == 0 {
            return Some((json, at + c.len_utf8()));
        }
    }
    None
}

fn word_as_json(word: &str) -> Option<&str> {
    Some(match word {
        "True" | "true" => "true",
        "False" | "false" => "false",
        // -Infinity and -nan keep their sign and then fail to parse; nobody prints them.
        "None" | "null" | "nan" | "NaN" | "inf" | "Infinity" => "null",
        // The exponent of 1e5 and 1e-05: the digits before it are copied already.
        _ if word.trim_start_matches(['e', 'E']).bytes().all(|b| b.is_ascii_digit()) => word,
        _ => return None,
    })
}

fn copy_string(
    quote: char,
    chars: &mut std::iter::Peekable<std::str::CharIndices<'_>>,
    json: &mut String,
) -> Option<()> {
    json.push('"');
    loop {
        match chars.next()?.1 {
            c if c == quote => break,
            '"' => json.push_str("\\\""),
            '\\' => match chars.next()?.1 {
                '\'' => json.push('\''),
                other => json.extend(['\\', other]),
            },
            '\n' => json.push_str("\\n"),
            '\t' => json.push_str("\\t"),
            c => json.push(c),
        }
    }
    json.push('"');
    Some(())
}

#[cfg(test)]
mod tests {
    use super::to_json;

    #[test]
    fn dictionaries_become_json() {
        let (json, length) =
            to_json("{'name': None, 'rate': nan, 'ok': True, 'say': 'a \"b\"', 'n': [1e5, -2]} and more").unwrap();
        assert_eq!(json, r#"{"name": null, "rate": null, "ok": true, "say": "a \"b\"", "n": [1e5, -2]}"#);
        assert_eq!(length, "{'name': None, 'rate': nan, 'ok': True, 'say': 'a \"b\"', 'n': [1e5, -2]}".len());
        assert_eq!(to_json("{never closed"), None);
        assert_eq!(to_json("[stage 3]"), None);
        assert_eq!(to_json("{'a': b}"), None);
    }
}
