// Made by ui/scripts/pack.mjs: `make ui`.
[
    ConsoleFile {
        path: "assets/index-C3xjPcEP.css",
        kind: "text/css; charset=utf-8",
        tag: "e0c0f81378bf10d6",
        plain: include_bytes!("assets/index-C3xjPcEP.css"),
        gzip: include_bytes!("assets/index-C3xjPcEP.css.gz"),
        brotli: include_bytes!("assets/index-C3xjPcEP.css.br"),
    },
    ConsoleFile {
        path: "assets/index-DmVaTZ-_.js",
        kind: "text/javascript; charset=utf-8",
        tag: "60f190aecc6e27c4",
        plain: include_bytes!("assets/index-DmVaTZ-_.js"),
        gzip: include_bytes!("assets/index-DmVaTZ-_.js.gz"),
        brotli: include_bytes!("assets/index-DmVaTZ-_.js.br"),
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
        tag: "d51dcad09d9ac292",
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
