//! The order in which a report is told: roots first, what follows from them folded under them.

use model::{Finding, Report, Severity};

/// A root finding with its rank and all that follows from it.
pub struct Chapter<'a> {
    /// Rank, from 1.
    pub number: usize,
    /// The root.
    pub root: &'a Finding,
    /// Consequences, nearest first.
    pub follows: Vec<&'a Finding>,
}

/// Roots in the report's order, worst first. At severity info they come only when asked for.
#[must_use]
pub fn chapters(report: &Report, all: bool) -> Vec<Chapter<'_>> {
    let roots = roots(report).into_iter().filter(|&at| all || report.findings[at].severity > Severity::Info);
    roots
        .enumerate()
        .map(|(i, at)| Chapter { number: i + 1, root: &report.findings[at], follows: consequences(report, at) })
        .collect()
}

/// Roots that [`chapters`] leaves out unless all are asked for.
#[must_use]
pub fn quiet_roots(report: &Report) -> usize {
    roots(report).into_iter().filter(|&at| report.findings[at].severity == Severity::Info).count()
}

/// Positions of the findings that are told on their own. Findings that explain each other in a
/// circle have no root; they are told rather than lost.
fn roots(report: &Report) -> Vec<usize> {
    let named: Vec<usize> = (0..report.findings.len()).filter(|&at| is_root(report, at)).collect();
    let mut told = vec![false; report.findings.len()];
    for &root in &named {
        reach(report, root).into_iter().for_each(|at| told[at] = true);
    }
    (0..report.findings.len()).filter(|at| named.contains(at) || !told[*at]).collect()
}

/// A finding is told on its own when nothing explains it, or what should explain it is not there.
fn is_root(report: &Report, at: usize) -> bool {
    report.findings[at].caused_by.is_none_or(|cause| cause == at || cause >= report.findings.len())
}

fn consequences(report: &Report, root: usize) -> Vec<&Finding> {
    // A member of a circle reaches itself and its peers, which are told on their own.
    if !is_root(report, root) {
        return Vec::new();
    }
    reach(report, root)[1..].iter().map(|&at| &report.findings[at]).collect()
}

/// A finding and all that it explains, nearest first.
fn reach(report: &Report, root: usize) -> Vec<usize> {
    let mut found = vec![root];
    let mut next = 0;
    while next < found.len() {
        let cause = found[next];
        for (at, finding) in report.findings.iter().enumerate() {
            if finding.caused_by == Some(cause) && !found.contains(&at) {
                found.push(at);
            }
        }
        next += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(causes: &[Option<usize>]) -> Report {
        let finding = |caused_by: &Option<usize>| Finding {
            severity: Severity::High,
            caused_by: *caused_by,
            ..Finding::default()
        };
        Report { findings: causes.iter().map(finding).collect(), ..Report::default() }
    }

    #[test]
    fn consequences_fold_under_their_root_at_any_depth() {
        let report = report(&[None, Some(0), Some(1), None, Some(99)]);
        let shape: Vec<usize> = chapters(&report, false).iter().map(|c| c.follows.len()).collect();
        assert_eq!(shape, [2, 0, 0]);
    }

    #[test]
    fn a_circle_of_causes_is_told_all_the_same() {
        assert_eq!(chapters(&report(&[Some(1), Some(0), None]), false).len(), 3);
    }
}
