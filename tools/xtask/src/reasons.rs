//! Reasons of Events and conditions, from the arguments of the macro `reasons!` in core.

use anyhow::Context as _;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Ident, Item, Token};

/// File that defines the reasons.
pub const DEFINITIONS: &str = "core/src/reasons.rs";

/// Reason in the macro `reasons!`, with its doc comment and its type (`Normal` or `Warning`).
pub struct Reason {
    pub attributes: Vec<Attribute>,
    pub kind: Ident,
    pub name: Ident,
}

impl Parse for Reason {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        Ok(Self { attributes: input.call(Attribute::parse_outer)?, kind: input.parse()?, name: input.parse()? })
    }
}

struct Reasons(Punctuated<Reason, Token![,]>);

impl Parse for Reasons {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        Ok(Self(Punctuated::parse_terminated(input)?))
    }
}

/// Returns the reasons that this source text defines.
///
/// # Errors
/// If the text is not Rust, or has no well-formed `reasons!`.
pub fn reasons(source: &str) -> anyhow::Result<Vec<Reason>> {
    let items = syn::parse_file(source).with_context(|| format!("cannot parse {DEFINITIONS}"))?.items;
    let invocation = items.iter().find_map(|item| match item {
        Item::Macro(item) if item.ident.is_none() && item.mac.path.is_ident("reasons") => Some(&item.mac),
        _ => None,
    });
    let invocation = invocation.with_context(|| format!("{DEFINITIONS} has no `reasons!`"))?;
    let Reasons(reasons) =
        invocation.parse_body().with_context(|| format!("cannot parse `reasons!` of {DEFINITIONS}"))?;
    Ok(reasons.into_iter().collect())
}
