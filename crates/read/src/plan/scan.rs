//! Scans: files, tables, JDBC, Hive, connectors.

use super::list::{closing, cut_at, first_number, is_cut, items, more_fields, names, split, without_ids};
use model::Scan;

/// Fields that a scan line can have, as `Key: value`. Spark 2.4 to 4.1, Databricks, Iceberg.
const FIELDS: [&str; 30] = [
    "Batched",
    "Bucketed",
    "DataFilters",
    "DictionaryFilters",
    "Format",
    "Location",
    "OptionalDataFilters",
    "PartitionCount",
    "PartitionFilters",
    "PushedAggregates",
    "PushedAggregation",
    "PushedFilters",
    "PushedGroupBy",
    "PushedGroupByExpressions",
    "PushedJoins",
    "PushedLimit",
    "PushedOffset",
    "PushedSample",
    "PushedTopN",
    "PushedVariantExtractions",
    "ReadSchema",
    "RequiredDataFilters",
    "RuntimeFilters",
    "SelectedBucketsCount",
    "Statistics",
    "ClusteringProvider",
    "PartitionKeys",
    "KeyGroupedPartitioning",
    "UsedIndexes",
    "RuntimeFiltersEnabled",
];

/// Reads a scan from its one-line text; `name` is the node's name, e.g. `Scan parquet lake.orders`.
pub(crate) fn scan(name: &str, detail: &str) -> Scan {
    let mut scan = Scan::default();
    name_parts(name, &mut scan);
    let (head, fields) = fields(detail);
    columns(head, &mut scan);
    for (key, value) in fields {
        field(&mut scan, key, value);
    }
    hive(head, &mut scan);
    iceberg(head, &mut scan);
    finish(&mut scan, detail);
    scan
}

/// The text before the first field, and the fields: values reach to the next known key.
fn fields(detail: &str) -> (&str, Vec<(&str, &str)>) {
    let mut found: Vec<(usize, &str)> = Vec::new();
    for (colon, _) in detail.match_indices(": ").chain(detail.strip_suffix(':').map(|d| (d.len(), ":"))) {
        let before = &detail[..colon];
        let word = before.rfind([' ', ',', '\n', ']']).map_or(0, |n| n + 1);
        if FIELDS.contains(&&before[word..]) {
            found.push((word, &before[word..]));
        }
    }
    let head = found.first().map_or(detail, |(at, _)| &detail[..*at]);
    let ends = found.iter().skip(1).map(|(at, _)| *at).chain([detail.len()]);
    let pairs = found.iter().zip(ends).map(|((at, key), end)| {
        let value = detail[(at + key.len() + 1).min(end)..end].trim();
        (*key, value.strip_suffix(',').unwrap_or(value))
    });
    (head, pairs.collect())
}

fn field(scan: &mut Scan, key: &str, value: &str) {
    let list = || Some(items(value).into_iter().map(str::to_owned).collect::<Vec<_>>());
    match key {
        "Format" => scan.format = value.to_lowercase(),
        "Location" => scan.location = Some(value.to_owned()),
        "PushedFilters" => scan.pushed = list(),
        // Photon filters inside its scan; there is no PushedFilters and no Filter above.
        "RequiredDataFilters" => scan.pushed = scan.pushed.take().or_else(list),
        "PartitionFilters" => scan.partition_filters = list(),
        "DataFilters" => scan.data_filters = list(),
        "ReadSchema" => scan.schema = schema(value),
        _ => {}
    }
    let text_fields = ["PushedFilters", "PartitionFilters", "DataFilters", "ReadSchema", "RequiredDataFilters"];
    scan.cut |= text_fields.contains(&key) && is_cut(value);
}

/// Format and table from a name: `Scan parquet lake.orders`, `Scan JDBCRelation(T) [numPartitions=4]`.
fn name_parts(name: &str, scan: &mut Scan) {
    let name = name.trim();
    let (first, rest) = cut_at(name, &[' ']);
    let rest = rest.trim();
    if let Some(inside) = rest.strip_prefix("JDBCRelation(") {
        let end = closing(rest, "JDBCRelation".len());
        scan.format = "jdbc".to_owned();
        // A cut text may lack the bracket that closes it.
        let table = inside.strip_suffix(&rest[end..]).unwrap_or(inside);
        scan.table = Some(table.strip_suffix(')').unwrap_or(table).to_owned());
        scan.partitions = rest[end..].strip_prefix(" [numPartitions=").and_then(first_number);
        return;
    }
    if rest.starts_with("ExistingRDD") || rest.is_empty() && first == "Scan" {
        scan.format = "rdd".to_owned();
        scan.table = Some(rest.trim_start_matches("ExistingRDD").trim().to_owned()).filter(|t| !t.is_empty());
        return;
    }
    let (format, table) = cut_at(rest, &[' ']);
    let table = table.trim();
    // `BatchScan lake.orders` names the table first, `Scan parquet lake.orders` the format.
    match (first.contains("Batch") && table.is_empty() && format.contains('.'), table.is_empty()) {
        (true, _) => scan.table = Some(format.to_owned()),
        (false, true) => scan.format = format.to_lowercase(),
        (false, false) => {
            scan.format = format.to_lowercase();
            scan.table = Some(table.to_owned());
        }
    }
}

/// The output list, the first bracket with attributes in it.
fn columns(head: &str, scan: &mut Scan) {
    let mut from = 0;
    while let Some(open) = head[from..].find('[').map(|n| n + from) {
        let end = closing(head, open);
        let list = &head[open..end];
        if list.contains('#') || list == "[]" || is_cut(list) {
            scan.columns = names(list);
            scan.more_columns = more_fields(list);
            return;
        }
        from = end;
    }
}

/// `HiveTableRelation [`db`.`t`, serde, Data Cols: [...], Partition Cols: [dt#3]], [isnotnull(dt#3)]`.
fn hive(head: &str, scan: &mut Scan) {
    let Some(at) = head.find("HiveTableRelation") else { return };
    scan.format = "hive".to_owned();
    let relation = &head[at..];
    let Some(open) = relation.find('[') else { return };
    let end = closing(relation, open);
    if scan.table.is_none() {
        scan.table = items(&relation[open..end]).first().map(|t| t.replace('`', ""));
    }
    if let Some(list) = after(relation, "Partition Cols: ") {
        scan.partition_columns = names(list);
        scan.cut |= is_cut(list);
    }
    if let Some(filters) = relation[end..].find('[') {
        let filters = &relation[end + filters..];
        scan.partition_filters = Some(items(&filters[..closing(filters, 0)]).into_iter().map(str::to_owned).collect());
    } else if !scan.partition_columns.is_empty() {
        scan.partition_filters = Some(Vec::new());
    }
}

/// `[filters=id IS NOT NULL, id = 5, groupedBy=]` of Iceberg scans.
fn iceberg(head: &str, scan: &mut Scan) {
    let Some(at) = head.find("filters=") else { return };
    let text = &head[at + "filters=".len()..];
    let end = [", groupedBy=", ", runtimeFilters=", ", case", "]"].iter().filter_map(|e| text.find(e)).min();
    let filters = split(text[..end.unwrap_or(text.len())].trim_start_matches('['));
    scan.pushed = Some(filters.into_iter().map(str::to_owned).collect());
    if scan.format.is_empty() {
        scan.format = "iceberg".to_owned();
    }
}

/// The bracketed list after a label.
fn after<'t>(text: &'t str, label: &str) -> Option<&'t str> {
    let at = text.find(label)? + label.len();
    Some(&text[at..closing(text, at)])
}

/// Names and types of `struct<a:int,b:struct<c:string>>`.
fn schema(text: &str) -> Vec<(String, String)> {
    let Some(inner) = text.trim().strip_prefix("struct<") else { return Vec::new() };
    let mut fields = Vec::new();
    let (mut depth, mut begin) = (0_i32, 0);
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            b'<' | b'(' => depth += 1,
            b'>' | b')' => depth -= 1,
            b',' if depth == 0 => {
                fields.push(&inner[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
        if depth < 0 {
            fields.push(&inner[begin..at]);
            begin = inner.len();
            break;
        }
    }
    fields.push(&inner[begin..]);
    let pair = |field: &str| field.split_once(':').map(|(name, of)| (name.trim().to_owned(), of.trim().to_owned()));
    // A cut schema ends in the middle of a field.
    fields.into_iter().filter(|f| !is_cut(f)).filter_map(pair).collect()
}

/// What follows from several fields together: Delta, partition columns, cuts.
fn finish(scan: &mut Scan, detail: &str) {
    let index = scan.location.as_deref().unwrap_or_default();
    if ["Tahoe", "PreparedDelta", "DeltaFile", "CdcAddFileIndex"].iter().any(|p| index.starts_with(p)) {
        scan.format = "delta".to_owned();
    }
    scan.cut |= scan.more_columns > 0 || detail.trim_end().ends_with("...");
    if scan.partition_columns.is_empty() {
        scan.partition_columns = partition_columns(scan, !schema_is_cut(detail));
    }
}

fn schema_is_cut(detail: &str) -> bool {
    detail.find("ReadSchema: ").is_none_or(|at| is_cut(&detail[at..]))
}

/// Columns that the output has and the files have not come from the directory names; so does
/// whatever a partition filter speaks of.
pub(crate) fn partition_columns(scan: &Scan, whole_schema: bool) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let filters = scan.partition_filters.iter().flatten();
    for column in filters.flat_map(|f| attributes(f)).chain(beside_schema(scan, whole_schema)) {
        if !found.contains(&column) {
            found.push(column);
        }
    }
    found
}

fn beside_schema(scan: &Scan, whole_schema: bool) -> Vec<String> {
    let files = scan.location.is_some() && scan.format != "json" && !scan.schema.is_empty();
    if !files || !whole_schema {
        return Vec::new();
    }
    // Metadata columns (`_metadata`, `__delta_internal_…`) stand beside the schema as well.
    let outside = |column: &&String| !column.starts_with('_') && !scan.schema.iter().any(|(name, _)| name == *column);
    scan.columns.iter().filter(outside).cloned().collect()
}

/// Names that have an id behind them: `(dt#9 >= 2025)` speaks of `dt`.
fn attributes(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (hash, _) in text.match_indices('#') {
        let word = |c: char| !(c.is_alphanumeric() || c == '_' || c == '.');
        let begin = text[..hash].rfind(word).map_or(0, |n| n + text[n..].chars().next().map_or(1, char::len_utf8));
        let digits = text[hash + 1..].starts_with(|c: char| c.is_ascii_digit());
        let name = without_ids(&text[begin..hash]);
        if digits && !name.is_empty() && name != "dynamicpruning" && name != "subquery" && !found.contains(&name) {
            found.push(name);
        }
    }
    found
}
