//! What went wrong, from the last lines that a program wrote.

/// The line that says it, and the stack that it stands in. Messages come before output, which is
/// where `spark-submit` puts both of a Python program.
pub(super) fn find(stderr: &str, stdout: &str) -> Option<(String, Option<String>)> {
    let both = [stderr, stdout];
    let stack = both.into_iter().find_map(python).or_else(|| both.into_iter().find_map(java));
    stack.or_else(|| both.into_iter().find_map(last_line).map(|line| (line.to_owned(), None)))
}

const TRACEBACK: &str = "Traceback (most recent call last):";

/// The last traceback: with its causes, which stand before it, told apart by these lines.
fn python(stderr: &str) -> Option<(String, Option<String>)> {
    const CHAINED: [&str; 2] = ["The above exception was the direct cause", "During handling of the above exception"];
    let last = stderr.rfind(TRACEBACK)?;
    let mut first = last;
    // As long as the text between two tracebacks says that they belong together.
    while let Some(before) = stderr[..first].rfind(TRACEBACK)
        && CHAINED.iter().any(|words| stderr[before..first].contains(words))
    {
        first = before;
    }
    let error = stderr[last..].lines().skip(1).find(|line| !line.is_empty() && !line.starts_with([' ', '\t']))?;
    let end = stderr[last..].find(error)? + last + error.len();
    // An error of Java is told in the next line, with its stack below.
    let rest = stderr[end..].strip_prefix('\n').filter(|rest| rest.starts_with(": "));
    let Some(cause) = rest.and_then(|rest| rest.lines().next()) else {
        return Some((error.trim_end().to_owned(), Some(stderr[first..end].to_owned())));
    };
    let below: usize =
        stderr[end..].split_inclusive('\n').skip(2).take_while(|line| is_java_stack(line)).map(str::len).sum();
    let end = (end + 1 + cause.len() + 1 + below).min(stderr.len());
    Some((format!("{}{}", error.trim_end(), cause.trim_end()), Some(stderr[first..end].trim_end().to_owned())))
}

fn is_java_stack(line: &str) -> bool {
    line.starts_with(['\t', ' ']) || line.starts_with("Caused by:")
}

fn java(stderr: &str) -> Option<(String, Option<String>)> {
    const THREAD: &str = "Exception in thread \"";
    let at = stderr.rfind(THREAD)?;
    let line = stderr[at..].lines().next()?;
    let error = line[THREAD.len()..].split_once("\" ").map_or(line, |(_, error)| error);
    let is_stack = |line: &&str| is_java_stack(line) || line.starts_with(THREAD);
    let stack: Vec<&str> = stderr[at..].lines().take_while(is_stack).collect();
    Some((error.to_owned(), Some(stack.join("\n"))))
}

fn last_line(stderr: &str) -> Option<&str> {
    stderr.lines().rev().map(str::trim).find(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_says_it_and_its_stack() {
        let python = "warning\nTraceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    x\nKeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"a.py\", line 3\nValueError: kaboom\nbye\n";
        let (error, trace) = find(python, "").unwrap();
        assert_eq!(error, "ValueError: kaboom");
        let trace = trace.unwrap();
        assert!(trace.starts_with("Traceback") && trace.contains("KeyError") && trace.ends_with("kaboom"), "{trace}");
        let java = "INFO x\nException in thread \"main\" java.lang.IllegalStateException: no\n\tat A.b(A.java:1)\nCaused by: java.io.IOException: disk\n\t... 3 more\nINFO y\n";
        let (error, trace) = find("", java).unwrap();
        assert_eq!(error, "java.lang.IllegalStateException: no");
        assert_eq!(trace.unwrap().lines().count(), 4);
        let py4j = "Traceback (most recent call last):\n  File \"a.py\", line 1\npy4j.protocol.Py4JJavaError: An error occurred while calling o69.parquet.\n: org.apache.spark.SparkException: no memory\n\tat A.b(A.java:1)\nCaused by: java.io.IOException: disk\n\nINFO y\n";
        let (error, trace) = find("INFO x\n", py4j).unwrap();
        assert_eq!(
            error,
            "py4j.protocol.Py4JJavaError: An error occurred while calling o69.parquet.: org.apache.spark.SparkException: no memory"
        );
        assert!(trace.unwrap().ends_with("Caused by: java.io.IOException: disk"));
        assert_eq!(find("a\nsh: no such file\n\n", "b"), Some(("sh: no such file".to_owned(), None)));
        assert_eq!(find(" \n", ""), None);
        assert_eq!(find(TRACEBACK, ""), Some((TRACEBACK.to_owned(), None)));
    }
}
