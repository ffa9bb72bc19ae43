//! Which names form which log.

use expect_test::{Expect, expect};
use read::source::{Entry, group};

/// `names`, one a line; a name followed by ` 0` is an empty file.
fn check(names: &str, expected: Expect) {
    let listing: Vec<Entry> = names
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| match line.strip_suffix(" 0") {
            Some(path) => Entry { path: path.into(), size: Some(0) },
            None => Entry { path: line.into(), size: Some(10) },
        })
        .collect();
    let grouped = group(&listing);
    let mut out = String::new();
    for log in &grouped.logs {
        let running = if log.in_progress { ", in progress" } else { "" };
        out += &format!("{:?} {}{running}\n", log.kind, log.name);
        log.notes.iter().for_each(|note| out += &format!("  note: {note}\n"));
        log.parts.iter().for_each(|part| out += &format!("  {part}\n"));
    }
    grouped.ignored.iter().for_each(|(path, why)| out += &format!("ignored {path}: {why}\n"));
    expected.assert_eq(&out);
}

#[test]
fn single_files() {
    check(
        "
        app-1.zstd
        application_17_0001_2.lz4.inprogress
        local-1
        notes.txt
        .app-1.zstd.crc
        empty 0
        old/app-0
        app-9.inprogress
        app-9
        bundle.zip
        ",
        expect![[r#"
            Single app-1
              app-1.zstd
            Single app-9
              app-9
            Single application_17_0001_2, in progress
              application_17_0001_2.lz4.inprogress
            Zip bundle
              bundle.zip
            Single local-1
              local-1
            Single notes.txt
              notes.txt
            Single app-0
              old/app-0
            ignored .app-1.zstd.crc: hidden file
            ignored empty: empty file
            ignored app-9.inprogress: another file takes its place
        "#]],
    );
}

#[test]
fn rolling_logs_sort_by_number() {
    check(
        "
        eventlog_v2_app-1/events_10_app-1.zstd
        eventlog_v2_app-1/events_9_app-1.zstd
        eventlog_v2_app-1/events_11_app-1
        eventlog_v2_app-1/events_8_app-1.zstd
        eventlog_v2_app-1/appstatus_app-1.inprogress 0
        eventlog_v2_app-1/.events_8_app-1.zstd.crc
        eventlog_v2_app-2_1/events_1_app-2_1
        eventlog_v2_app-2_1/events_2_app-2_1 0
        eventlog_v2_app-2_1/appstatus_app-2_1 0
        ",
        expect![[r#"
            Rolling app-1, in progress
              note: files 1 to 7 of the rolling log are missing
              eventlog_v2_app-1/events_8_app-1.zstd
              eventlog_v2_app-1/events_9_app-1.zstd
              eventlog_v2_app-1/events_10_app-1.zstd
              eventlog_v2_app-1/events_11_app-1
            Rolling app-2_1
              eventlog_v2_app-2_1/events_1_app-2_1
            ignored eventlog_v2_app-1/.events_8_app-1.zstd.crc: hidden file
            ignored eventlog_v2_app-2_1/events_2_app-2_1: empty file
        "#]],
    );
}

#[test]
fn compacted_files_replace_earlier_ones() {
    check(
        "
        eventlog_v2_a/appstatus_a 0
        eventlog_v2_a/events_1_a.zstd
        eventlog_v2_a/events_2_a.zstd.compact
        eventlog_v2_a/events_3_a.zstd
        eventlog_v2_a/events_4_a.zstd
        eventlog_v2_a/events_4_a.zstd.compact
        eventlog_v2_a/events_5_a.zstd
        eventlog_v2_a/events_8_a.zstd
        ",
        expect![[r#"
            Rolling a
              note: Spark compacted the log up to file 4: events of finished jobs are left out
              note: files 6 to 7 of the rolling log are missing
              eventlog_v2_a/events_4_a.zstd.compact
              eventlog_v2_a/events_5_a.zstd
              eventlog_v2_a/events_8_a.zstd
            ignored eventlog_v2_a/events_1_a.zstd: another file takes its place
            ignored eventlog_v2_a/events_2_a.zstd.compact: another file takes its place
            ignored eventlog_v2_a/events_3_a.zstd: another file takes its place
            ignored eventlog_v2_a/events_4_a.zstd: another file takes its place
        "#]],
    );
}

#[test]
fn rolling_folder_given_itself() {
    check(
        "
        appstatus_a 0
        events_1_a
        events_2_a
        events_1_b
        ",
        expect![[r#"
            Rolling a
              events_1_a
              events_2_a
            Rolling b
              note: the rolling log has no appstatus file
              events_1_b
        "#]],
    );
}

#[test]
fn databricks_folders() {
    check(
        "
        0615-abc/eventlog/0615-abc_10_0_0_1/123/eventlog
        0615-abc/eventlog/0615-abc_10_0_0_1/123/eventlog-2021-06-15--23-00.gz
        0615-abc/eventlog/0615-abc_10_0_0_1/123/eventlog-2021-06-15--09-30.gz
        0615-abc/eventlog/0615-abc_10_0_0_1/123/eventlog-2021-06-16--00-00
        0615-abc/driver/stdout
        0615-abc/driver/log4j-active.log
        other/eventlog
        ",
        expect![[r#"
            Single log4j-active
              0615-abc/driver/log4j-active.log
            Single stdout
              0615-abc/driver/stdout
            Databricks 123
              0615-abc/eventlog/0615-abc_10_0_0_1/123/eventlog-2021-06-15--09-30.gz
              0615-abc/eventlog/0615-abc_10_0_0_1/123/eventlog-2021-06-15--23-00.gz
              0615-abc/eventlog/0615-abc_10_0_0_1/123/eventlog-2021-06-16--00-00
              0615-abc/eventlog/0615-abc_10_0_0_1/123/eventlog
            Databricks other
              other/eventlog
        "#]],
    );
    check(
        "eventlog\neventlog-2021-06-15--15-00.gz",
        expect![[r#"
        Databricks eventlog
          eventlog-2021-06-15--15-00.gz
          eventlog
    "#]],
    );
}

#[test]
fn odd_names_do_no_harm() {
    check(
        "
        events_
        events_x_a
        events_99999999999999999999_a
        events_18446744073709551615_a
        eventlog-2021
        eventlog_v2_only/appstatus_only
        .hidden/app-1
        _temporary/0/part
        _SUCCESS
        a//b
        dir/
        .inprogress
        ",
        expect![[r#"
            Single b
              a//b
            Single eventlog-2021
              eventlog-2021
            Single events_
              events_
            Rolling a
              note: the rolling log has no appstatus file
              note: files 1 to 18446744073709551614 of the rolling log are missing
              events_18446744073709551615_a
            Single events_99999999999999999999_a
              events_99999999999999999999_a
            Single events_x_a
              events_x_a
            ignored .hidden/app-1: hidden file
            ignored _temporary/0/part: hidden file
            ignored _SUCCESS: hidden file
            ignored dir/: empty file
            ignored .inprogress: hidden file
        "#]],
    );
}
