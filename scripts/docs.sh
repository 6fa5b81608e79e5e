#!/usr/bin/env bash
# Builds the site: the pages of docs/ and spec/, in one book, below the directory of build products.
# The pages keep their places below one root, so that links between docs/ and spec/ hold in the repository and in the site.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$HOME/.cache/tampu/target}
scripts/need.sh mdbook
export PATH=$HOME/.cache/tampu/tools/bin:$PATH

stage=$target/docs
rm -rf "$stage"
mkdir -p "$stage/src"
cp -r docs spec "$stage/src/"
mv "$stage/src/docs/book.toml" "$stage/book.toml"
sed -i 's/^src = "."$/src = "src"/' "$stage/book.toml"
{
  sed -E 's#\]\(\.\./#](#; t; s#\]\(#](docs/#' docs/SUMMARY.md
  printf '\n# Contracts\n\n'
  printf -- '- [What programs may rely on](spec/README.md)\n'
  find spec -name '*.md' ! -path spec/README.md ! -path spec/GLOSSARY.md | LC_ALL=C sort | while read -r page; do
    printf -- '  - [%s](%s)\n' "$(sed -n 's/^# //p;T;q' "$page")" "$page"
  done
} >"$stage/src/SUMMARY.md"
rm "$stage/src/docs/SUMMARY.md"
mdbook build "$stage"
echo "built: $stage/book/index.html"
