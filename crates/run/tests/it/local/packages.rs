//! Programs that need Python packages, installed by the real installer from files of this machine.

use super::{World, alive, eventually, exit, script, shims};
use run::local::{self, Handle, How, Launch, Packages};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Makes a wheel: FOLDER NAME VERSION.
const WHEEL: &str = r#"
import sys, zipfile
folder, name, version = sys.argv[1:]
with zipfile.ZipFile(f"{folder}/{name}-{version}-py3-none-any.whl", "w") as wheel:
    info = f"{name}-{version}.dist-info"
    wheel.writestr(f"{name}.py", f"version = {version!r}\ndef tell(): print('told by', version)\n")
    wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(f"{info}/entry_points.txt", f"[console_scripts]\ntell = {name}:tell\n")
    wheel.writestr(f"{info}/RECORD", "")
"#;

impl World {
    fn wheel(&self, name: &str, version: &str) -> String {
        let made = Command::new("python3").args(["-c", WHEEL]).arg(self.path()).args([name, version]).status().unwrap();
        assert!(made.success());
        self.path().join(format!("{name}-{version}-py3-none-any.whl")).display().to_string()
    }

    fn launch_with(&self, attempt: &str, requirements: &[&str], text: &str) -> Handle {
        let packages = Packages {
            python: "python3".to_owned(),
            requirements: requirements.iter().map(|&line| line.to_owned()).collect(),
            environments: self.path().join("environments"),
        };
        let mut launch = Launch { packages: Some(packages), ..script(self.path(), text) };
        launch.environment.insert("PATH".to_owned(), std::env::var("PATH").unwrap());
        local::launch(shims(), &self.path().join("attempts").join(attempt), &launch).unwrap()
    }

    fn environments(&self) -> usize {
        let entries = std::fs::read_dir(self.path().join("environments")).unwrap();
        entries.filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|end| end == "ready")).count()
    }
}

/// A program that wrote nothing has left no file.
fn output(handle: &Handle, name: &str) -> String {
    std::fs::read_to_string(handle.dir.join(name)).unwrap_or_default()
}

const TELL: &str = "python -c 'import shop; print(shop.version)'; echo $VIRTUAL_ENV; tell";

#[test]
fn tasks_that_ask_for_the_same_share_an_environment() {
    let world = World::new();
    let wheel = world.wheel("shop", "1.0");
    let both = ["1", "2"].map(|attempt| world.launch_with(attempt, &[&wheel], TELL));
    let told = both.each_ref().map(|handle| {
        assert_eq!(exit(handle).how, How::Code(0), "{}", output(handle, "stderr"));
        output(handle, "stdout")
    });
    assert_eq!(told[0], told[1]);
    assert!(told[0].starts_with("1.0\n") && told[0].ends_with("told by 1.0\n"), "{}", told[0]);
    assert_eq!(world.environments(), 1);
    // The one that made it shows what the installer said; a later one only uses it.
    let said = both.each_ref().map(|handle| output(handle, "stderr").contains("Successfully installed"));
    assert_eq!(said.into_iter().filter(|said| *said).count(), 1);

    // While a task uses it, it stays.
    let busy = world.launch_with("3", &[&wheel], "touch \"$1/busy\"; sleep 60");
    eventually("the third task", || world.path().join("busy").exists());
    let folder = world.path().join("environments");
    assert_eq!(local::remove_unused(&folder, Duration::ZERO).unwrap(), 0);
    local::stop(&busy, Duration::from_secs(1)).unwrap();
    assert_eq!(output(&busy, "stderr"), "");
    assert_eq!(local::remove_unused(&folder, Duration::from_secs(3_600)).unwrap(), 0);
    assert_eq!(local::remove_unused(&folder, Duration::ZERO).unwrap(), 1);
    assert_eq!(world.environments(), 0);
    assert_eq!(local::remove_unused(Path::new("/no/such"), Duration::ZERO).unwrap(), 0);
}

#[test]
fn what_cannot_be_installed_is_told_by_the_installer() {
    let world = World::new();
    let broken = world.path().join("broken-1.0-py3-none-any.whl");
    std::fs::write(&broken, "no wheel").unwrap();
    let failed = world.launch_with("1", &[broken.to_str().unwrap()], "touch \"$1/ran\"");
    let How::NoPackages(why) = exit(&failed).how else { panic!("{:?}", exit(&failed)) };
    assert!(why.contains("broken"), "{why}");
    let missing = world.launch_with("2", &["/no/such-1.0-py3-none-any.whl"], "touch \"$1/ran\"");
    let How::NoPackages(why) = exit(&missing).how else { panic!("{:?}", exit(&missing)) };
    assert!(why.contains("/no/such-1.0-py3-none-any.whl") && why.contains("cannot be read"), "{why}");
    assert!(!world.path().join("ran").exists());
    assert_eq!(world.environments(), 0);
}

#[test]
fn an_installation_that_was_stopped_is_made_anew() {
    let world = World::new();
    let wheel = world.wheel("shop", "2.0");
    let first = world.launch_with("1", &[&wheel], TELL);
    eventually("the environment", || {
        let entries = std::fs::read_dir(world.path().join("environments"));
        entries.is_ok_and(|entries| entries.flatten().any(|entry| entry.path().join("bin").exists()))
    });
    alive(&first);
    local::stop(&first, Duration::from_secs(1)).unwrap();
    assert_eq!(world.environments(), 0);
    let second = world.launch_with("2", &[&wheel], TELL);
    assert_eq!(exit(&second).how, How::Code(0), "{}", output(&second, "stderr"));
    assert!(output(&second, "stdout").starts_with("2.0\n"));
}
