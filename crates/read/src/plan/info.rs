//! The plan JSON of the event log (`sparkPlanInfo`), read without recursion.
//!
//! Each plan level is two levels of JSON, so a plan of 64 operators passes the depth at which
//! JSON crates give up or run out of stack. The reader below keeps its own stack.

use std::borrow::Cow;

/// A plan as the log writes it, flat: nodes in pre-order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanInfo<'a> {
    /// The nodes; node 0 is the root.
    pub nodes: Vec<InfoNode<'a>>,
}

/// A node as the log writes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InfoNode<'a> {
    /// Position of the parent in [`PlanInfo::nodes`].
    pub parent: Option<usize>,
    /// `nodeName`.
    pub node_name: Cow<'a, str>,
    /// `simpleString`.
    pub simple_string: Cow<'a, str>,
    /// `metadata`: scans have `Location`, `PushedFilters`, …, each cut at
    /// `spark.sql.maxMetadataStringLength` (100) characters.
    pub metadata: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// `metrics`.
    pub metrics: Vec<InfoMetric<'a>>,
}

/// An SQL metric as the log writes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InfoMetric<'a> {
    /// `name`.
    pub name: Cow<'a, str>,
    /// `accumulatorId`.
    pub accumulator_id: i64,
    /// `metricType`: `sum`, `size`, `timing`, `nsTiming`, `average`; Databricks adds more.
    pub metric_type: Cow<'a, str>,
}

/// Text that is no plan JSON: where reading stopped, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no plan JSON at byte {0}")]
pub struct NoPlanJson(pub usize);

impl<'a> PlanInfo<'a> {
    /// Reads one `sparkPlanInfo` object. Keys that are not known are skipped.
    ///
    /// # Errors
    /// When the text is not a JSON object, or ends inside it.
    pub fn parse(json: &'a str) -> Result<Self, NoPlanJson> {
        let mut json = Json { text: json, at: 0 };
        let at = json.at;
        json.plan().ok_or(NoPlanJson(json.at.max(at)))
    }
}

impl<'de: 'a, 'a> serde::Deserialize<'de> for PlanInfo<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'de serde_json::value::RawValue>::deserialize(deserializer)?;
        PlanInfo::parse(raw.get()).map_err(serde::de::Error::custom)
    }
}

/// A cursor over JSON text.
struct Json<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Json<'a> {
    /// The node object, and all below it: `open` holds the nodes whose object is not closed.
    fn plan(&mut self) -> Option<PlanInfo<'a>> {
        let mut plan = PlanInfo::default();
        let mut open: Vec<usize> = Vec::new();
        self.expect(b'{')?;
        open.push(plan.push(None));
        while let Some(&node) = open.last() {
            match self.next()? {
                b'"' => match self.key()?.as_ref() {
                    "children" => self.expect(b'[')?,
                    key => self.field(&mut plan.nodes[node], key)?,
                },
                // A child begins: the list it stands in stays open around it.
                b'{' => open.push(plan.push(Some(node))),
                b'}' => drop(open.pop()),
                b',' | b']' => {}
                _ => return None,
            }
        }
        Some(plan)
    }

    fn field(&mut self, node: &mut InfoNode<'a>, key: &str) -> Option<()> {
        match key {
            "nodeName" => node.node_name = self.string_value()?,
            "simpleString" => node.simple_string = self.string_value()?,
            "metadata" => node.metadata = self.strings()?,
            "metrics" => node.metrics = self.metrics()?,
            _ => self.skip()?,
        }
        Some(())
    }

    fn strings(&mut self) -> Option<Vec<(Cow<'a, str>, Cow<'a, str>)>> {
        let mut pairs = Vec::new();
        self.object(|json, key| {
            pairs.push((key, json.string_value()?));
            Some(())
        })?;
        Some(pairs)
    }

    fn metrics(&mut self) -> Option<Vec<InfoMetric<'a>>> {
        let mut metrics = Vec::new();
        self.expect(b'[')?;
        loop {
            match self.next()? {
                b']' => return Some(metrics),
                b',' => {}
                b'{' => {
                    self.at -= 1;
                    metrics.push(self.metric()?);
                }
                _ => return None,
            }
        }
    }

    fn metric(&mut self) -> Option<InfoMetric<'a>> {
        let mut metric = InfoMetric::default();
        self.object(|json, key| {
            match key.as_ref() {
                "name" => metric.name = json.string_value()?,
                "accumulatorId" => metric.accumulator_id = json.number()?,
                "metricType" => metric.metric_type = json.string_value()?,
                _ => json.skip()?,
            }
            Some(())
        })?;
        Some(metric)
    }

    /// Calls back with each key of an object; the callback reads the value.
    fn object(&mut self, mut value: impl FnMut(&mut Self, Cow<'a, str>) -> Option<()>) -> Option<()> {
        self.expect(b'{')?;
        loop {
            match self.next()? {
                b'}' => return Some(()),
                b',' => {}
                b'"' => {
                    let key = self.key()?;
                    value(self, key)?;
                }
                _ => return None,
            }
        }
    }

    fn space(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
    }

    fn next(&mut self) -> Option<u8> {
        self.space();
        let byte = *self.text.as_bytes().get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then_some(())
    }

    /// A key whose opening quote was read, and the colon after it.
    fn key(&mut self) -> Option<Cow<'a, str>> {
        let key = self.string()?;
        self.expect(b':')?;
        Some(key)
    }

    /// A string; `null` and other values read as empty.
    fn string_value(&mut self) -> Option<Cow<'a, str>> {
        if self.next()? == b'"' {
            return self.string();
        }
        self.at -= 1;
        self.skip()?;
        Some(Cow::Borrowed(""))
    }

    /// The rest of a string whose opening quote was read.
    fn string(&mut self) -> Option<Cow<'a, str>> {
        let begin = self.at;
        let mut escaped = false;
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            self.at += memchr::memchr2(b'"', b'\\', rest)?;
            if self.text.as_bytes()[self.at] == b'"' {
                break;
            }
            escaped = true;
            self.at = (self.at + 2).min(self.text.len());
        }
        self.at += 1;
        let raw = &self.text[begin..self.at - 1];
        if !escaped {
            return Some(Cow::Borrowed(raw));
        }
        // Half of a surrogate pair is no text: then the escapes stay as they are.
        let quoted = &self.text[begin - 1..self.at];
        Some(serde_json::from_str::<String>(quoted).map_or(Cow::Borrowed(raw), Cow::Owned))
    }

    fn number(&mut self) -> Option<i64> {
        self.space();
        let rest = &self.text[self.at..];
        let length = rest.bytes().take_while(|b| b.is_ascii_digit() || *b == b'-').count();
        self.at += length;
        rest[..length].parse().ok()
    }

    /// Any value, whatever its depth.
    fn skip(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.next()? {
                b'"' => drop(self.string()?),
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.checked_sub(1)?,
                b',' | b':' if depth > 0 => continue,
                b',' | b':' => return None,
                _ => self.scalar(),
            }
            if depth == 0 {
                return Some(());
            }
        }
    }

    /// The rest of a number, `true`, `false` or `null`.
    fn scalar(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|b| !matches!(b, b',' | b'}' | b']') && !b.is_ascii_whitespace()).count();
    }
}

impl PlanInfo<'_> {
    fn push(&mut self, parent: Option<usize>) -> usize {
        self.nodes.push(InfoNode { parent, ..InfoNode::default() });
        self.nodes.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"{"nodeName":"A \"q\"","simpleString":"A","children":[
        {"nodeName":"B","simpleString":"B 1","children":[],"metadata":{"Format":"Parquet"},
         "metrics":[{"name":"rows","accumulatorId":7,"metricType":"sum"}]},
        {"nodeName":"C","simpleString":null,"children":[],"new":[{"x":[1,true]}],"metadata":{},"metrics":[]}],
        "metadata":{},"metrics":[]}"#;

    #[test]
    fn a_tree_reads_flat() {
        let plan = PlanInfo::parse(SMALL).unwrap();
        let seen: Vec<_> = plan.nodes.iter().map(|n| (n.node_name.as_ref(), n.parent)).collect();
        assert_eq!(seen, [("A \"q\"", None), ("B", Some(0)), ("C", Some(0))]);
        assert_eq!(plan.nodes[1].metadata, [("Format".into(), "Parquet".into())]);
        assert_eq!(plan.nodes[1].metrics[0].accumulator_id, 7);
        assert_eq!(serde_json::from_str::<PlanInfo>(SMALL).unwrap(), plan);
    }

    #[test]
    fn depth_costs_no_stack() {
        let deep = format!("{}{}", r#"{"nodeName":"P","children":["#.repeat(200_000), "]}".repeat(200_000));
        assert_eq!(PlanInfo::parse(&deep).unwrap().nodes.len(), 200_000);
        assert_eq!(serde_json::from_str::<PlanInfo>(&deep).unwrap().nodes.len(), 200_000);
    }

    #[test]
    fn every_cut_is_an_error_and_never_a_panic() {
        for cut in 0..SMALL.len() {
            assert!(PlanInfo::parse(&SMALL[..cut]).is_err(), "{cut}");
        }
    }
}
