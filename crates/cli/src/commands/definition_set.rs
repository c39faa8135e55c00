//! Definitions that a definition starts, directly or not: files in its folder, or registered definitions.

mod search;

use super::counted;
use super::failure::Files;
use super::source::Source;
use crate::api::{ApiTarget, Client, newest_version};
use crate::progress::say;
use search::{FILES_MAX, Search};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, VecDeque};
use windlass_dialects::{
    Child, Compiled, DIAGNOSTICS_MAX, Diagnostic, Outside, SecretUse, Severity, compile_for,
};

/// Maximum number of definitions that one may lead to.
const MEMBERS_MAX: usize = 1_000;

#[derive(Debug, Default)]
pub struct DefinitionSet {
    members: Vec<Member>,
    /// Children that were not found, with the text of the reference.
    nowhere: Vec<Nowhere>,
    /// Secrets that are not stored, with the steps that read them.
    secrets: Vec<SecretUse>,
    /// Whether the definition is only checked, so that warnings are printed.
    is_check: bool,
}

#[derive(Debug)]
struct Member {
    /// Name by which others start it and under which it is registered.
    name: String,
    source: Source,
    compiled: Compiled,
}

#[derive(Debug)]
struct Nowhere {
    why: Diagnostic,
    /// Member that refers to it; None: the first definition.
    of: Option<usize>,
    /// The diagnostic with its position in the text.
    rendered: String,
}

impl DefinitionSet {
    /// Finds all definitions. Paths are relative to the folder of the first definition, so that a path has one meaning.
    /// `missing` is the severity of a definition that is not found: a check warns, because it may be registered later.
    pub fn of(
        compiled: &Compiled,
        source: &Source,
        (target, outside): (&ApiTarget, Outside<'_>),
        missing: Severity,
    ) -> anyhow::Result<DefinitionSet> {
        let registered = &Registered { target, client: OnceCell::new() };
        let mut definition_set =
            DefinitionSet { is_check: missing == Severity::Warning, ..DefinitionSet::default() };
        let mut search = Search::new(&source.folder);
        let mut names: BTreeMap<String, Found> = BTreeMap::new();
        let mut open: VecDeque<(Option<usize>, Child)> = of_definition(None, compiled);
        while let Some((of, child)) = open.pop_front() {
            if !names.contains_key(&child.path) {
                let found = definition_set.find(&child.path, &mut search, (registered, outside))?;
                if let Found::Member(member) = found {
                    open.extend(of_definition(Some(member), &definition_set.members[member].compiled));
                }
                names.insert(child.path.clone(), found);
            }
            let found = &names[&child.path];
            // Further problems are dropped, like those of one definition.
            if definition_set.nowhere.len() >= DIAGNOSTICS_MAX {
                continue;
            }
            if let Some(mut why) = definition_set.trouble(&child, found, registered)? {
                if missing == Severity::Warning {
                    (why.severity, why.code) = (missing, Cow::Borrowed("W0251"));
                }
                let (text, file) = match of {
                    None => (&compiled.shown, &source.shown),
                    Some(of) => {
                        (&definition_set.members[of].compiled.shown, &definition_set.members[of].source.shown)
                    }
                };
                let rendered = why.render(text, file);
                definition_set.nowhere.push(Nowhere { why, of, rendered });
            }
        }
        Ok(definition_set)
    }

    fn find(
        &mut self,
        path: &str,
        search: &mut Search,
        (registered, outside): (&Registered<'_>, Outside<'_>),
    ) -> anyhow::Result<Found> {
        if self.members.len() >= MEMBERS_MAX {
            anyhow::bail!("the definition leads to more than {MEMBERS_MAX} others");
        }
        let file = match search.find(path) {
            search::Hit::One(file) => file,
            search::Hit::Several(files) => return Ok(Found::Several(files)),
            search::Hit::None { cut } => {
                let is_registered = registered.newest(path)?.is_some();
                return Ok(if is_registered { Found::Registered } else { Found::Nowhere { cut } });
            }
        };
        let source = Source::read(&file)?;
        let compiled = compile_for(&source.text, outside);
        self.members.push(Member { name: path.to_owned(), source, compiled });
        Ok(Found::Member(self.members.len() - 1))
    }

    fn trouble(
        &self,
        child: &Child,
        found: &Found,
        registered: &Registered<'_>,
    ) -> anyhow::Result<Option<Diagnostic>> {
        let with_hint = |message: String, hint: &str| {
            let mut why = child.nowhere.clone();
            (why.message, why.hint) = (message, Some(hint.to_owned()));
            Some(why)
        };
        let newest = registered.newest(&child.path)?;
        let has = match found {
            Found::Nowhere { cut: false } => return Ok(Some(child.nowhere.clone())),
            Found::Nowhere { cut: true } => {
                let hint = format!(
                    "only the first {FILES_MAX} files of this folder were searched for that name: write the file's \
                     own path, without its extension"
                );
                return Ok(with_hint(child.nowhere.message.clone(), &hint));
            }
            Found::Several(files) => {
                let message = format!("several files have the name `{}`: {}", child.path, files.join(", "));
                return Ok(with_hint(message, "use the name of the file, without its extension"));
            }
            Found::Registered => newest.map_or(0, |(version, _)| version),
            // A registered definition keeps its number; another text gets the next one.
            Found::Member(member) => newest.map_or(1, |(version, text)| {
                version + u32::from(text != self.members[*member].compiled.source)
            }),
        };
        Ok(match child.version {
            Some(version) if version > has => {
                let message = {
                    let has = counted(has, "version");
                    format!("playbook `{}` has {has}, and none is {version}", child.path)
                };
                with_hint(message, "omit `version` to start the newest")
            }
            _ => None,
        })
    }

    /// Finds secrets that steps read, here or in children, and that are not stored where the definition would run.
    pub fn find_missing_secrets(&mut self, root: &Compiled, target: &ApiTarget) -> anyhow::Result<()> {
        let members = self.members.iter().map(|member| &member.compiled);
        let used: Vec<SecretUse> =
            members.chain([root]).flat_map(|compiled| &compiled.manifest.secrets).cloned().collect();
        if used.is_empty() {
            return Ok(());
        }
        let listed = match target.connect_if_present("windlass validate")? {
            Some(client) => client.get(&["secrets"], &[])?,
            None => Value::Null,
        };
        let known = listed["secrets"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_known = |used: &SecretUse| known.iter().any(|secret| secret["name"] == used.secret.as_str());
        self.secrets = used.into_iter().filter(|used| !is_known(used)).collect();
        Ok(())
    }

    /// Returns the missing secrets as warnings of `validate --json`.
    pub fn missing_secrets(&self) -> impl Iterator<Item = Value> {
        self.secrets.iter().map(|used| {
            let (message, hint) = missing_secret(used);
            json!({ "severity": "warning", "code": "W0256", "message": message, "hint": hint, "path": used.step })
        })
    }

    /// Returns whether all definitions were found and have no errors.
    pub fn is_whole(&self) -> bool {
        !self.nowhere.iter().any(|nowhere| nowhere.why.is_error())
            && self.members.iter().all(|member| member.compiled.is_valid())
    }

    /// Prints the problems of the children, each with its file.
    pub fn report(&self) {
        for member in &self.members {
            for diagnostic in member.compiled.diagnostics.iter().chain(self.advice(&member.compiled)) {
                say(&diagnostic.render(&member.compiled.shown, &member.source.shown));
            }
        }
        for nowhere in &self.nowhere {
            say(&nowhere.rendered);
        }
        for (message, hint) in self.secrets.iter().map(missing_secret) {
            say(&format!("warning[W0256]: {message}\n = hint: {hint}\n"));
        }
    }

    fn advice<'c>(&self, compiled: &'c Compiled) -> &'c [Diagnostic] {
        if self.is_check { &compiled.advice } else { &[] }
    }

    /// Formats the counts of errors and warnings, those of the first definition included.
    pub fn problems(&self, root: &Compiled) -> String {
        let all = || self.members.iter().map(|member| &member.compiled).chain([root]);
        let missing = self.nowhere.iter().filter(|nowhere| nowhere.why.is_error()).count();
        let errors = all().map(|compiled| compiled.errors().count()).sum::<usize>() + missing;
        let advice = all().map(|compiled| self.advice(compiled).len()).sum::<usize>();
        let warnings = all().map(|compiled| compiled.warnings().count()).sum::<usize>();
        let warnings = warnings + advice + self.secrets.len() + self.nowhere.len() - missing;
        match (errors, warnings) {
            (0, 0) => "no problem".to_owned(),
            (0, warnings) => counted(warnings, "warning"),
            (errors, 0) => counted(errors, "error"),
            (errors, warnings) => format!("{}, {}", counted(errors, "error"), counted(warnings, "warning")),
        }
    }

    pub fn missing_of_root(&self, severity: Severity) -> impl Iterator<Item = &Diagnostic> {
        self.missing_of(None, severity)
    }

    fn missing_of(&self, of: Option<usize>, severity: Severity) -> impl Iterator<Item = &Diagnostic> {
        let missing = self.nowhere.iter().filter(move |nowhere| nowhere.of == of);
        missing.map(|nowhere| &nowhere.why).filter(move |why| why.severity == severity)
    }

    /// Returns the children as objects of `validate --json`.
    pub fn to_json(&self) -> Vec<Value> {
        let members = self.members.iter().enumerate().map(|(place, member)| {
            let missing = |severity| self.missing_of(Some(place), severity);
            let errors: Vec<_> = member.compiled.errors().chain(missing(Severity::Error)).collect();
            let warnings = member.compiled.warnings_and_advice().chain(missing(Severity::Warning));
            json!({
                "path": member.name,
                "file": member.source.shown,
                "valid": errors.is_empty(),
                "errors": errors,
                "warnings": warnings.collect::<Vec<_>>(),
            })
        });
        members.collect()
    }

    /// Returns the file of each definition by its name.
    pub fn files(&self) -> Files {
        let own = |member: &Member| member.compiled.name.clone().unwrap_or_else(|| member.name.clone());
        let named = |member: &Member| (member.name.clone(), member.source.shown.clone());
        let mut files: Files = self.members.iter().map(named).collect();
        files.extend(self.members.iter().map(|member| (own(member), member.source.shown.clone())));
        files
    }

    /// Returns each text with the name by which it is started.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &str)> {
        self.members.iter().map(|member| (member.name.as_str(), member.source.text.as_str()))
    }
}

/// Definitions that are registered already; the API is opened when it is first needed.
struct Registered<'t> {
    target: &'t ApiTarget,
    client: OnceCell<Option<Client>>,
}

impl Registered<'_> {
    fn newest(&self, name: &str) -> anyhow::Result<Option<(u32, String)>> {
        if self.client.get().is_none() {
            let _ = self.client.set(self.target.connect_if_present("windlass validate")?);
        }
        match self.client.get() {
            Some(Some(client)) => Ok(newest_version(client, name)?),
            Some(None) | None => Ok(None),
        }
    }
}

fn missing_secret(used: &SecretUse) -> (String, String) {
    let SecretUse { step, secret } = used;
    (
        format!("step `{step}` reads the secret `{secret}`, which is not stored"),
        format!("store it with `windlass secrets set {secret}`; without it the playbook cannot start"),
    )
}

enum Found {
    Member(usize),
    Registered,
    Several(Vec<String>),
    Nowhere { cut: bool },
}

fn of_definition(of: Option<usize>, compiled: &Compiled) -> VecDeque<(Option<usize>, Child)> {
    compiled.manifest.children.iter().map(|child| (of, child.clone())).collect()
}
