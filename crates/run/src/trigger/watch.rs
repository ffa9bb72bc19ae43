//! Triggers that wait for something outside: files that arrive in a folder or a bucket, commits of
//! Delta tables.
//!
//! In: what somebody saw there, with the time. Out: whether a run is due. Nothing here looks by
//! itself; [`Watch`] is all that has to outlive the process. The rules are those of the public
//! documentation of file arrival and table update triggers: only files of a new name count, an
//! overwritten one does not; what is there when the trigger is made starts nothing.

use super::{Failed, Fired};
use serde::{Deserialize, Serialize};

/// Most files of a place that are watched, as on Databricks without file events.
pub const MOST_FILES: usize = 10_000;
/// The version of a table that is not there yet.
pub const NO_VERSION: i64 = -1;

/// Something outside that changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The files below a folder or a prefix, by its path or URL.
    Files(String),
    /// A Delta table, by its path or URL.
    Table(String),
}

impl Place {
    /// Its path or URL.
    #[must_use]
    pub fn address(&self) -> &str {
        match self {
            Self::Files(address) | Self::Table(address) => address,
        }
    }
}

/// What a trigger waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Where.
    pub places: Vec<Place>,
    /// `min_time_between_triggers_seconds` as ms: from the last time it fired.
    pub between_ms: i64,
    /// `wait_after_last_change_seconds` as ms: so long nothing may have happened.
    pub wait_ms: i64,
    /// `condition`: whether all places must have changed, not one of them.
    pub needs_all: bool,
}

impl Rules {
    /// `trigger` of the runs.
    #[must_use]
    pub fn cause(&self) -> &'static str {
        match self.places.first() {
            Some(Place::Table(_)) => "TABLE",
            _ => "FILE_ARRIVAL",
        }
    }
}

/// What somebody saw at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Glance {
    /// All its files.
    Files(Files),
    /// A table: its newest version, and whether data changed since the version that was asked about.
    Table {
        /// That version; `None`: none was known.
        since: Option<i64>,
        /// Version of the newest commit.
        version: i64,
        /// Whether a commit since then added or removed rows.
        has_changed: bool,
    },
    /// There is no such folder or table (yet); why.
    Missing(String),
    /// It could not be looked at; why.
    Failed(String),
}

/// The files of a place, by digests: names are long, and there are thousands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    /// Of each path, in rising order.
    paths: Vec<u64>,
    /// Of all paths, sizes and times: it changes with anything that happens there.
    all: u64,
}

impl Files {
    /// Of paths below the place, sizes in bytes and last changes in epoch ms.
    pub fn of<'a>(files: impl IntoIterator<Item = (&'a str, u64, i64)>) -> Self {
        let mut digests: Vec<(u64, u64)> = files
            .into_iter()
            .map(|(path, bytes, modified_ms)| {
                let of_path = fnv1a(FNV_BASIS, path.as_bytes());
                (of_path, fnv1a(fnv1a(of_path, &bytes.to_le_bytes()), &modified_ms.to_le_bytes()))
            })
            .collect();
        digests.sort_unstable();
        let all = digests.iter().fold(FNV_BASIS, |all, (_, file)| fnv1a(all, &file.to_le_bytes()));
        Self { paths: digests.into_iter().map(|(path, _)| path).collect(), all }
    }

    fn has_more_than(&self, before: &Self) -> bool {
        self.paths.iter().any(|path| before.paths.binary_search(path).is_err())
    }
}

const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

fn fnv1a(from: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(from, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// What was seen at a place when it was last looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Seen {
    Files(Files),
    Table(i64),
}

impl Seen {
    const fn nothing(at: &Place) -> Self {
        match at {
            Place::Files(_) => Self::Files(Files { paths: Vec::new(), all: FNV_BASIS }),
            Place::Table(_) => Self::Table(NO_VERSION),
        }
    }
}

/// How a place stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Spot {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seen: Option<Seen>,
    /// Whether it has changed since the trigger fired.
    #[serde(default)]
    is_updated: bool,
    /// Why it could not be looked at the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// How a trigger stands: what it has to know when it goes on after a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    spots: Vec<Spot>,
    /// When something was last seen to have happened for which no run was started, epoch ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changed_ms: Option<i64>,
    /// The last time that it fired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fired: Option<Fired>,
    /// The last time that it could not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<Failed>,
}

/// What a look leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// Whether the watch has to be kept anew.
    pub is_new: bool,
    /// Whether a run is due now: [`Watch::fire`] then.
    pub is_due: bool,
    /// What went wrong that had not gone wrong before.
    pub troubles: Vec<String>,
}

/// What happened at a place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Noticed {
    Nothing,
    /// Something is to be kept, though it starts nothing.
    Change,
    /// Something that a wait starts over from.
    Activity,
}

impl Watch {
    /// Of a trigger that nobody has looked for yet.
    #[must_use]
    pub fn new(rules: &Rules) -> Self {
        Self { spots: vec![Spot::default(); rules.places.len()], ..Self::default() }
    }

    /// As it was kept; a new one where that is of another trigger.
    #[must_use]
    pub fn restored(kept: &str, rules: &Rules) -> Self {
        let kept = serde_json::from_str(kept).ok();
        kept.filter(|kept: &Self| kept.spots.len() == rules.places.len()).unwrap_or_else(|| Self::new(rules))
    }

    /// For each place, from which version on its commits are of interest; `None`: it is no table, or
    /// was not looked at.
    pub fn since(&self) -> impl Iterator<Item = Option<i64>> {
        self.spots.iter().map(|spot| match spot.seen {
            Some(Seen::Table(version)) => Some(version),
            _ => None,
        })
    }

    /// For each place, whether it has changed since the trigger fired; `None`: nobody has looked.
    pub fn updated(&self) -> impl Iterator<Item = Option<bool>> {
        self.spots.iter().map(|spot| spot.seen.as_ref().map(|_| spot.is_updated))
    }

    /// Somebody looked at all places, in their order: began at one time and is told of now, epoch ms.
    /// A run is due when the conditions held when the look began, so that nothing that came meanwhile
    /// is passed over.
    pub fn look(&mut self, rules: &Rules, glances: Vec<Glance>, began_ms: i64, now_ms: i64) -> Looked {
        let mut looked = Looked::default();
        for ((spot, place), glance) in self.spots.iter_mut().zip(&rules.places).zip(glances) {
            let error = match &glance {
                Glance::Missing(why) | Glance::Failed(why) => Some(why.clone()),
                Glance::Files(_) | Glance::Table { .. } => None,
            };
            if spot.error != error {
                looked.is_new = true;
                looked.troubles.extend(error.clone());
                self.failed = error.clone().map(|why| Failed { at_ms: now_ms, why }).or(self.failed.take());
                spot.error = error;
            }
            match spot.take(place, glance) {
                Noticed::Nothing => {}
                Noticed::Change => looked.is_new = true,
                Noticed::Activity => {
                    looked.is_new = true;
                    self.changed_ms = Some(now_ms);
                }
            }
        }
        // A clock that was set back must not hold a run up for as long.
        self.changed_ms = self.changed_ms.map(|at| at.min(now_ms));
        looked.is_due = self.is_due(rules, began_ms, now_ms);
        looked
    }

    fn is_due(&self, rules: &Rules, began_ms: i64, now_ms: i64) -> bool {
        let mut updated = self.spots.iter().map(|spot| spot.is_updated);
        let is_met = if rules.needs_all { updated.all(|is| is) } else { updated.any(|is| is) };
        let is_quiet = rules.wait_ms == 0 || self.changed_ms.is_none_or(|at| began_ms - at >= rules.wait_ms);
        let is_apart =
            self.fired.is_none_or(|Fired { at_ms, .. }| at_ms > now_ms || now_ms - at_ms >= rules.between_ms);
        is_met && is_quiet && is_apart
    }

    /// A run was started for all that has changed, or refused for good.
    pub fn fire(&mut self, now_ms: i64, run_id: Option<i64>) {
        self.spots.iter_mut().for_each(|spot| spot.is_updated = false);
        self.changed_ms = None;
        self.fired = Some(Fired { at_ms: now_ms, run_id });
    }
}

impl Spot {
    fn take(&mut self, place: &Place, glance: Glance) -> Noticed {
        let (now, is_update) = match (glance, &self.seen) {
            (Glance::Files(now), Some(Seen::Files(before))) => {
                let is_update = now.has_more_than(before);
                (Seen::Files(now), is_update)
            }
            (Glance::Table { since, version, has_changed }, Some(Seen::Table(before))) => {
                if since != Some(*before) {
                    // It tells of commits that have been taken by now.
                    return Noticed::Nothing;
                }
                (Seen::Table(version), has_changed)
            }
            // What is there at first was there before the trigger.
            (Glance::Files(now), _) => (Seen::Files(now), false),
            (Glance::Table { version, .. }, _) => (Seen::Table(version), false),
            // What comes to be where nothing was is new. What was there and is gone may come back.
            (Glance::Missing(_), None) => (Seen::nothing(place), false),
            (Glance::Missing(_) | Glance::Failed(_), _) => return Noticed::Nothing,
        };
        if self.seen.as_ref() == Some(&now) {
            return Noticed::Nothing;
        }
        let is_first = self.seen.is_none();
        // A commit that changes no data is nothing to wait after.
        let is_activity = !is_first && (is_update || matches!(now, Seen::Files(_)));
        self.seen = Some(now);
        self.is_updated |= is_update;
        if is_activity { Noticed::Activity } else { Noticed::Change }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rules(between_s: i64, wait_s: i64) -> Rules {
        let places = vec![Place::Files("/in".to_owned())];
        Rules { places, between_ms: between_s * 1_000, wait_ms: wait_s * 1_000, needs_all: false }
    }

    /// Files by name; a `!` at the end is another content.
    fn files(names: &str) -> Glance {
        let file = |name: &'static str, bytes| (name, bytes, 0);
        let known = ["a", "b", "c", "d"];
        Glance::Files(Files::of(names.split_whitespace().map(|given| {
            let name = known.into_iter().find(|name| given.starts_with(name)).unwrap();
            file(name, given.len() as u64)
        })))
    }

    /// Looks at times in seconds; after each the watch is kept and restored. Gives when it fired.
    fn fires(rules: &Rules, looks: impl IntoIterator<Item = (i64, Vec<Glance>)>) -> Vec<i64> {
        let mut watch = Watch::new(rules);
        let mut fired = Vec::new();
        for (at_s, glances) in looks {
            let looked = watch.look(rules, glances, at_s * 1_000, at_s * 1_000);
            if looked.is_due {
                watch.fire(at_s * 1_000, Some(at_s));
                fired.push(at_s);
            }
            watch = Watch::restored(&serde_json::to_string(&watch).unwrap(), rules);
        }
        fired
    }

    #[test]
    fn new_files_start_one_run() {
        for (what, rules, looks, expected) in [
            ("what was there starts nothing", rules(0, 0), vec![(0, "a b"), (10, "a b")], vec![]),
            ("one that is new does", rules(0, 0), vec![(0, "a"), (10, "a b"), (20, "a b")], vec![10]),
            ("several are one run", rules(0, 0), vec![(0, ""), (10, "a b c")], vec![10]),
            ("one that is overwritten does not", rules(0, 0), vec![(0, "a"), (10, "a!")], vec![]),
            ("nor one that goes", rules(0, 0), vec![(0, "a b"), (10, "a")], vec![]),
            ("one that comes again is new", rules(0, 0), vec![(0, "a"), (10, ""), (20, "a")], vec![20]),
            ("the wait begins at the look", rules(0, 60), vec![(0, ""), (10, "a"), (60, "a"), (70, "a")], vec![70]),
            (
                "more files begin it anew",
                rules(0, 60),
                vec![(0, ""), (10, "a"), (60, "a b"), (70, "a b"), (120, "a b")],
                vec![120],
            ),
            (
                "so does one that grows",
                rules(0, 60),
                vec![(0, ""), (10, "a"), (60, "a!"), (80, "a!"), (120, "a!")],
                vec![120],
            ),
            ("files may go meanwhile", rules(0, 60), vec![(0, ""), (10, "a"), (80, ""), (140, "")], vec![140]),
            (
                "runs are apart",
                rules(60, 0),
                vec![(0, ""), (10, "a"), (20, "a b"), (60, "a b"), (70, "a b")],
                vec![10, 70],
            ),
            // The example of the public documentation: 120 s between, 60 s after the last change.
            (
                "both",
                rules(120, 60),
                vec![
                    (-70, ""),
                    (-60, "a"),
                    (0, "a"),
                    (5, "a b"),
                    (115, "a b c"),
                    (120, "a b c"),
                    (174, "a b c"),
                    (175, "a b c"),
                ],
                vec![0, 175],
            ),
        ] {
            let looks = looks.into_iter().map(|(at, names)| (at, vec![files(names)]));
            assert_eq!(fires(&rules, looks), expected, "{what}");
        }
    }

    #[test]
    fn tables_are_waited_for_one_or_all() {
        let places = ["/a", "/b"].map(|at| Place::Table(at.to_owned())).to_vec();
        let rules = |needs_all| Rules { places: places.clone(), between_ms: 0, wait_ms: 0, needs_all };
        let at = |since, version, has_changed| Glance::Table { since, version, has_changed };
        let (new, still) = (|version| at(None, version, false), |version| at(Some(version), version, false));
        let looks = || {
            vec![
                (0, vec![new(3), Glance::Missing("nothing".to_owned())]),
                (10, vec![at(Some(3), 4, true), Glance::Missing("nothing".to_owned())]),
                // Files were rewritten.
                (20, vec![at(Some(4), 5, false), at(Some(NO_VERSION), 0, true)]),
                (30, vec![at(Some(4), 6, true), still(0)]),
                (40, vec![still(5), Glance::Failed("no answer".to_owned())]),
                (50, vec![at(Some(5), 6, true), at(Some(0), 1, true)]),
            ]
        };
        assert_eq!(fires(&rules(false), looks()), [10, 20, 50]);
        assert_eq!(fires(&rules(true), looks()), [20, 50]);
    }

    #[test]
    fn what_goes_wrong_is_told_once_and_forgets_nothing() {
        let rules = rules(0, 0);
        let mut watch = Watch::new(&rules);
        let mut look = |at_ms, glance| {
            let looked = watch.look(&rules, vec![glance], at_ms, at_ms);
            looked.is_due.then(|| watch.fire(at_ms, None));
            (looked.troubles, looked.is_due, watch.failed.as_ref().map(|failed| failed.at_ms))
        };
        let trouble = |why: &str| Glance::Failed(why.to_owned());
        assert_eq!(look(0, files("a")), (vec![], false, None));
        assert_eq!(look(1, trouble("no answer")), (vec!["no answer".to_owned()], false, Some(1)));
        assert_eq!(look(2, trouble("no answer")), (vec![], false, Some(1)));
        assert_eq!(look(3, Glance::Missing("gone".to_owned())), (vec!["gone".to_owned()], false, Some(3)));
        assert_eq!(look(4, files("a")), (vec![], false, Some(3)));
        assert_eq!(look(5, files("a b")), (vec![], true, Some(3)));
        // A folder that comes with the first file.
        let mut watch = Watch::new(&rules);
        let mut look = |glance| watch.look(&rules, vec![glance], 0, 0).is_due;
        assert_eq!((look(Glance::Missing("not there".to_owned())), look(files("a"))), (false, true));
    }

    #[test]
    fn what_is_kept_of_another_trigger_is_not_used() {
        let rules = rules(0, 0);
        for kept in ["", "{}", r#"{"spots":[{},{}]}"#] {
            assert_eq!(Watch::restored(kept, &rules), Watch::new(&rules), "{kept}");
        }
    }

    proptest! {
        /// Files come, grow and go between looks, and the process starts anew after each.
        #[test]
        fn no_run_comes_too_soon_and_none_twice(
            between_s in prop_oneof![Just(0), 60..200i64],
            wait_s in prop_oneof![Just(0), 60..200i64],
            steps in prop::collection::vec((1..100i64, 0..4u8, 0..6usize), 1..60),
        ) {
            let rules = rules(between_s, wait_s);
            let mut watch = Watch::new(&rules);
            let (mut now_s, mut last_fired, mut last_activity) = (0, None::<i64>, None::<i64>);
            let (mut there, mut is_new) = (std::collections::BTreeMap::<usize, u64>::new(), false);
            watch.look(&rules, vec![Glance::Files(Files::of([]))], 0, 0);
            for (later_s, what, file) in steps {
                now_s += later_s;
                let active = match what {
                    0 => {
                        let before = there.insert(file, 1);
                        is_new |= before.is_none();
                        before != Some(1)
                    }
                    1 => there.get_mut(&file).map(|bytes| *bytes += 1).is_some(),
                    2 => there.remove(&file).is_some(),
                    _ => false,
                };
                if active { last_activity = Some(now_s); }
                now_s += 1;
                let names: Vec<(String, u64)> = there.iter().map(|(name, bytes)| (name.to_string(), *bytes)).collect();
                let seen = Files::of(names.iter().map(|(name, bytes)| (name.as_str(), *bytes, 0)));
                let looked = watch.look(&rules, vec![Glance::Files(seen)], now_s * 1_000, now_s * 1_000);
                if looked.is_due {
                    prop_assert!(is_new, "a run for nothing");
                    prop_assert!(last_fired.is_none_or(|at| now_s - at >= between_s), "too soon after another");
                    prop_assert!(wait_s == 0 || last_activity.is_none_or(|at| now_s - at >= wait_s), "too soon after a file");
                    watch.fire(now_s * 1_000, None);
                    (last_fired, is_new) = (Some(now_s), false);
                }
                watch = Watch::restored(&serde_json::to_string(&watch).unwrap(), &rules);
            }
            // Nothing that came is forgotten.
            let names: Vec<(String, u64)> = there.iter().map(|(name, bytes)| (name.to_string(), *bytes)).collect();
            let seen = || Glance::Files(Files::of(names.iter().map(|(name, bytes)| (name.as_str(), *bytes, 0))));
            let later = (now_s + 1_000) * 1_000;
            let due = watch.look(&rules, vec![seen()], later, later).is_due;
            prop_assert_eq!(due, is_new);
        }
    }
}
