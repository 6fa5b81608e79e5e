package org.tampu.internal;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** The bytes that pages of {@code spec/} draw. */
public final class SpecPage {
    private SpecPage() {}

    /** Returns the dumps of a page in their order. */
    public static List<byte[]> dumps(String page) throws IOException {
        List<byte[]> dumps = new ArrayList<>();
        ByteArrayOutputStream open = null;
        for (String line : Files.readAllLines(Path.of("../../../spec").resolve(page))) {
            if (line.equals("```hex")) {
                open = new ByteArrayOutputStream();
            } else if (line.startsWith("```") && open != null) {
                dumps.add(open.toByteArray());
                open = null;
            } else if (open != null) {
                String bytes = line.substring(line.indexOf(':') + 1);
                bytes = bytes.contains("#") ? bytes.substring(0, bytes.indexOf('#')) : bytes;
                for (String each : bytes.strip().split(" +")) {
                    open.write(Integer.parseInt(each, 16));
                }
            }
        }
        return dumps;
    }
}
