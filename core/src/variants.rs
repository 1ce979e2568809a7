//! Enums whose variants have names in objects, metrics or announcements.

/// Gives an enum the list of its variants, and a function that returns the name of each.
macro_rules! variants {
    ($of:ident, $name:ident: $($variant:ident = $text:literal),* $(,)?) => {
        impl $of {
            pub const ALL: [Self; [$($text),*].len()] = [$(Self::$variant),*];

            /// Returns the name of the variant, as users see it.
            pub const fn $name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}
pub(crate) use variants;
