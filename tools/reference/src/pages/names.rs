//! Page of labels, annotations, finalizers, conditions and reasons, from the constants in the sources and their doc
//! comments.

use super::markdown::{code, table, text};
use anyhow::Context as _;
use std::path::Path;
use syn::{Attribute, Expr, Item, ItemConst, Lit, Meta};
use xtask::reasons::{self, Reason};

const NAMES: &str = "api/src/names.rs";
const NAMES_OF_SLICES: &str = "endpointslice/src/names.rs";
const CONDITIONS: &str = "core/src/conditions.rs";

const CONDITIONS_INTRODUCTION: &str = "\
[events.md](events.md#conditions) lists the reasons that each condition has, by object.

";
const REASONS_INTRODUCTION: &str = "\
Reasons of conditions, Events, log lines and the label `reason` of metrics. Reasons of type Warning need an action of a user: \
[events.md](events.md#reasons) explains what to do.

";
const SLICES_INTRODUCTION: &str = "\
Names that the EndpointSlice controller of the member agent uses, as kube-controller-manager does.

";

pub(super) fn body(root: &Path) -> anyhow::Result<String> {
    let names = items(root, NAMES)?;
    let mut body = String::new();
    for (title, module) in [("Labels", "labels"), ("Annotations", "annotations"), ("Finalizers", "finalizers")] {
        let rows = module_rows(&names, module).with_context(|| format!("{NAMES} has no module {module}"))?;
        body.push_str(&format!("## {title}\n\n{}", table(&["name", "meaning"], rows)));
    }
    let of_slices =
        rows(&items(root, NAMES_OF_SLICES)?, |name| name.starts_with("LABEL_") || name.starts_with("ANNOTATION_"));
    body.push_str(&format!("## EndpointSlices\n\n{SLICES_INTRODUCTION}{}", table(&["name", "meaning"], of_slices)));
    let types = rows(&items(root, CONDITIONS)?, |_| true);
    body.push_str(&format!("## Condition types\n\n{CONDITIONS_INTRODUCTION}{}", table(&["type", "meaning"], types)));
    let reasons =
        table(&["reason", "type", "meaning"], reason_rows(&reasons::reasons(&read(root, reasons::DEFINITIONS)?)?));
    body.push_str(&format!("## Reasons\n\n{REASONS_INTRODUCTION}{reasons}"));
    Ok(body)
}

fn items(root: &Path, path: &str) -> anyhow::Result<Vec<Item>> {
    Ok(syn::parse_file(&read(root, path)?).with_context(|| format!("cannot parse {path}"))?.items)
}

fn read(root: &Path, path: &str) -> anyhow::Result<String> {
    std::fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))
}

fn module_rows(items: &[Item], name: &str) -> Option<Vec<Vec<String>>> {
    items.iter().find_map(|item| match item {
        Item::Mod(module) if module.ident == name => Some(rows(&module.content.as_ref()?.1, |_| true)),
        _ => None,
    })
}

/// Returns a row for each public constant that is a text and whose name `is_wanted` accepts.
fn rows(items: &[Item], is_wanted: impl Fn(&str) -> bool) -> Vec<Vec<String>> {
    let constants = items.iter().filter_map(|item| match item {
        Item::Const(constant) if is_wanted(&constant.ident.to_string()) => Some(constant),
        _ => None,
    });
    constants.filter_map(|constant| Some(vec![code(&value(constant)?), text(&description(&constant.attrs))])).collect()
}

fn value(constant: &ItemConst) -> Option<String> {
    match &*constant.expr {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Str(text) if matches!(constant.vis, syn::Visibility::Public(_)) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the doc comment as one line. Each item of a list begins with `<br>`.
fn description(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(line) => Some(line.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    let lines: Vec<String> =
        lines.map(|line| line.trim().replace("- ", "<br>– ").replace("[`", "`").replace("`]", "`")).collect();
    lines.join(" ")
}

fn reason_rows(reasons: &[Reason]) -> Vec<Vec<String>> {
    let row = |reason: &Reason| {
        vec![code(&reason.name.to_string()), reason.kind.to_string(), text(&description(&reason.attributes))]
    };
    reasons.iter().map(row).collect()
}
