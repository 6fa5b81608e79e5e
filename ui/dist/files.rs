// Made by ui/scripts/pack.mjs: `make ui`.
[
    ConsoleFile {
        path: "assets/index-CEqZufGw.js",
        kind: "text/javascript; charset=utf-8",
        tag: "294ed4c93fb25963",
        plain: include_bytes!("assets/index-CEqZufGw.js"),
        gzip: include_bytes!("assets/index-CEqZufGw.js.gz"),
        brotli: include_bytes!("assets/index-CEqZufGw.js.br"),
    },
    ConsoleFile {
        path: "assets/index-DwjZFg8V.css",
        kind: "text/css; charset=utf-8",
        tag: "38b6b94842d26fb3",
        plain: include_bytes!("assets/index-DwjZFg8V.css"),
        gzip: include_bytes!("assets/index-DwjZFg8V.css.gz"),
        brotli: include_bytes!("assets/index-DwjZFg8V.css.br"),
    },
    ConsoleFile {
        path: "icon.svg",
        kind: "image/svg+xml",
        tag: "6b45a7c3f99c7944",
        plain: include_bytes!("icon.svg"),
        gzip: include_bytes!("icon.svg.gz"),
        brotli: include_bytes!("icon.svg.br"),
    },
    ConsoleFile {
        path: "index.html",
        kind: "text/html; charset=utf-8",
        tag: "df3abe103627c315",
        plain: include_bytes!("index.html"),
        gzip: include_bytes!("index.html.gz"),
        brotli: include_bytes!("index.html.br"),
    },
    ConsoleFile {
        path: "licences.txt",
        kind: "text/plain; charset=utf-8",
        tag: "19b7af65d42f9e50",
        plain: include_bytes!("licences.txt"),
        gzip: include_bytes!("licences.txt.gz"),
        brotli: include_bytes!("licences.txt.br"),
    },
]
