//! Real logs: the numbers of Spark's server, and counts taken without any parser of ours.

use testkit::{counts, shared, spark_history};

/// The shared data, or a word about what is skipped.
fn data(test: &str) -> Option<std::path::PathBuf> {
    let found = shared().map(|root| root.join("data"));
    if found.is_none() {
        eprintln!("{test} skipped: needs ../shared");
    }
    found
}

#[test]
fn numbers_equal_those_of_sparks_history_server() {
    let Some(data) = data("numbers_equal_those_of_sparks_history_server") else { return };
    let outcome = spark_history::compare(&data).unwrap();
    let compared = &outcome.compared;
    println!("{} answers, {} values, not compared: {:?}", outcome.answers, compared.checked, outcome.skipped);
    for (kind, fields) in &outcome.fields {
        println!("{kind}: {}", fields.join(", "));
    }
    assert!(compared.mismatches.is_empty(), "{}", compared.mismatches.join("\n"));
    assert!(compared.checked > 10_000);
}

#[test]
fn counts_of_the_labelled_logs() {
    let Some(data) = data("counts_of_the_labelled_logs") else { return };
    let compared = counts::labelled(&data).unwrap();
    assert!(compared.mismatches.is_empty(), "{}", compared.mismatches.join("\n"));
    assert!(compared.checked > 500);
}

#[test]
fn counts_of_the_public_logs() {
    let Some(data) = data("counts_of_the_public_logs") else { return };
    let compared = counts::public(&data).unwrap();
    assert!(compared.mismatches.is_empty(), "{}", compared.mismatches.join("\n"));
    assert!(compared.checked > 200);
}
