//! Thresholds and prices: defaults, then `lakescope.toml`, then the environment, then options.

use anyhow::{Context, Result, anyhow, bail};
use diagnose::Config;
use figment::providers::{Env, Format, Serialized, Toml};
use figment::value::{Dict, Value};
use figment::{Figment, Profile};
use std::path::{Path, PathBuf};

/// Looked for in the current folder.
const FILE: &str = "lakescope.toml";
/// The table of the file that holds the thresholds.
const TABLE: &str = "diagnose";
const PREFIX: &str = "LAKESCOPE_";

/// Options of commands that diagnose.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Thresholds and prices")]
pub struct Options {
    /// Set a threshold, e.g. `skew_ratio=2`; `lakescope rules --settings` lists them.
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Read thresholds from this file [default: lakescope.toml, if there].
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Price of one core for an hour; costs are shown with it.
    #[arg(long, value_name = "MONEY_PER_CORE_HOUR", value_parser = price, allow_negative_numbers = true)]
    pub rate: Option<f64>,
    /// Currency of the price: a sign or a code.
    #[arg(long, value_name = "CURRENCY")]
    pub currency: Option<String>,
}

fn price(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(price) if price.is_finite() && price >= 0.0 => Ok(price),
        Ok(price) if price < 0.0 => Err("a price is not below 0".to_owned()),
        _ => Err("not a price such as 0.05".to_owned()),
    }
}

/// Puts all sources together.
pub fn load(options: &Options) -> Result<Config> {
    let names = names();
    let mut figment = Figment::from(Serialized::defaults(Config::default()));
    if let Some(file) = file(options)? {
        figment = figment.merge(Toml::file(file).nested_table());
    }
    let known = names.clone();
    // Other variables with the prefix belong to other parts; only known names are taken.
    let environment = Env::prefixed(PREFIX).filter(move |key| known.iter().any(|name| key == name.as_str()));
    figment = figment.merge(environment);
    for setting in &options.set {
        let (name, value) = assignment(setting, &names)?;
        figment = figment.merge(Serialized::default(&name, value));
    }
    if let Some(rate) = options.rate {
        figment = figment.merge(Serialized::default("core_hour_price", rate));
    }
    if let Some(currency) = &options.currency {
        figment = figment.merge(Serialized::default("currency", currency));
    }
    figment.extract().map_err(|error| anyhow!("cannot use the settings: {error}"))
}

/// Names of all thresholds with their defaults, in their order.
pub fn defaults() -> Vec<(String, String)> {
    let json = serde_json::to_value(Config::default()).unwrap_or_default();
    let Some(fields) = json.as_object() else { return Vec::new() };
    fields.iter().map(|(name, value)| (name.clone(), value.to_string())).collect()
}

fn names() -> Vec<String> {
    defaults().into_iter().map(|(name, _)| name).collect()
}

fn file(options: &Options) -> Result<Option<&Path>> {
    match &options.config {
        Some(file) if !file.is_file() => {
            bail!("cannot read the settings {}: there is no such file", file.display())
        }
        Some(file) => Ok(Some(file)),
        None => Ok(Path::new(FILE).is_file().then_some(Path::new(FILE))),
    }
}

fn assignment(setting: &str, names: &[String]) -> Result<(String, Value)> {
    let (name, value) = setting.split_once('=').with_context(|| format!("--set {setting}: write NAME=VALUE"))?;
    let (name, value) = (name.trim(), value.trim());
    if !names.iter().any(|known| known == name) {
        let near = nearest(name, names).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        bail!("--set {name}: there is no such threshold{near} (`lakescope rules --settings` lists them)");
    }
    let value = number(name, value).with_context(|| format!("--set {name}: {value} is not a number"))?;
    Ok((name.to_owned(), value))
}

/// A number; sizes may be written `128MB`, times `90s`.
fn number(name: &str, text: &str) -> Option<Value> {
    if name == "currency" {
        return Some(Value::from(text));
    }
    if let Ok(whole) = text.parse::<i64>() {
        return Some(Value::from(whole));
    }
    if let Ok(real) = text.parse::<f64>() {
        return real.is_finite().then(|| Value::from(real));
    }
    match () {
        () if name.contains("bytes") => model::parse_bytes(text, 1).map(Value::from),
        () if name.ends_with("_ms") => milliseconds(text).map(Value::from),
        () => None,
    }
}

fn milliseconds(text: &str) -> Option<i64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(digits);
    let scale = match unit.trim() {
        "ms" => 1.0,
        "s" => 1e3,
        "m" | "min" => 6e4,
        "h" => 3.6e6,
        _ => return None,
    };
    Some((number.parse::<f64>().ok()? * scale) as i64)
}

/// The name that shares most of its words, for a hint.
fn nearest<'a>(name: &str, names: &'a [String]) -> Option<&'a String> {
    let shared = |known: &str| known.split('_').filter(|word| name.split('_').any(|w| w == *word)).count();
    names.iter().max_by_key(|known| shared(known)).filter(|known| shared(known) > 0)
}

/// The table `[diagnose]` of a file; other tables belong to other parts.
trait NestedTable {
    fn nested_table(self) -> OneTable;
}

struct OneTable(figment::providers::Data<Toml>);

impl NestedTable for figment::providers::Data<Toml> {
    fn nested_table(self) -> OneTable {
        OneTable(self)
    }
}

impl figment::Provider for OneTable {
    fn metadata(&self) -> figment::Metadata {
        self.0.metadata()
    }

    fn data(&self) -> Result<figment::value::Map<Profile, Dict>, figment::Error> {
        let mut data = self.0.data()?;
        for table in data.values_mut() {
            *table = table.remove(TABLE).and_then(Value::into_dict).unwrap_or_default();
        }
        Ok(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(set: &[&str]) -> Options {
        let set = set.iter().map(|s| (*s).to_owned()).collect();
        Options { set, config: None, rate: Some(0.1), currency: None }
    }

    #[test]
    fn options_change_thresholds() {
        let config = load(&options(&["skew_ratio=2", "big_partition_bytes=2GB", "gap_ms=90s"])).unwrap();
        assert_eq!((config.skew_ratio, config.big_partition_bytes, config.gap_ms), (2.0, 2 << 30, 90_000));
        assert_eq!(config.core_hour_price, Some(0.1));
    }

    #[test]
    fn wrong_names_and_values_are_named() {
        for (setting, said) in [
            ("skew_ration=2", "did you mean skew_"),
            ("skew_ratio", "write NAME=VALUE"),
            ("skew_ratio=lots", "not a number"),
        ] {
            let error = format!("{:#}", load(&options(&[setting])).unwrap_err());
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn a_file_has_a_table_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("own.toml");
        std::fs::write(&file, "[other]\nx = 1\n[diagnose]\nskew_ratio = 3.0\n").unwrap();
        let options = Options { config: Some(file.clone()), ..options(&[]) };
        assert_eq!(load(&options).unwrap().skew_ratio, 3.0);
        std::fs::write(&file, "[diagnose]\nskew_ration = 3.0\n").unwrap();
        assert!(load(&options).unwrap_err().to_string().contains("skew_ration"));
    }
}
