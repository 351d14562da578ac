//! What a URL means, and what is said about a wrong one.
