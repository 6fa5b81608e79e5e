package org.tampu.book;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.tampu.book.Logbook.Entry;
import org.tampu.internal.json.Json;

/**
 * The content of an entry that is being changed. What is not changed stays: attributes, text, files and links.
 *
 * <pre>{@code
 * try (Draft draft = books.lock("Shift", 17, Duration.ofMinutes(10))) {
 *     draft.attributes().put("Type", "Fixed");
 *     draft.save();
 * }
 * }</pre>
 */
public final class Draft implements AutoCloseable {
    private final Logbook books;
    private final Map<String, Object> attributes = new LinkedHashMap<>();
    private final Map<String, Object> content = new LinkedHashMap<>();
    private Entry entry;
    private boolean isLocked;

    Draft(Logbook books, Map<String, Object> read, boolean isLocked) {
        this.books = books;
        this.isLocked = isLocked;
        entry = new Entry(Json.text(read, "book", ""), Json.number(read, "id", 0), Json.number(read, "revision", 0));
        if (read.get("attributes") instanceof List<?> all) {
            for (Object each : all) {
                if (each instanceof Map<?, ?> one && one.get("values") instanceof List<?> values) {
                    attributes.put(String.valueOf(one.get("name")), values.size() == 1 ? values.get(0) : values);
                }
            }
        }
        for (String member : List.of("text", "encoding", "attachments", "links")) {
            if (read.containsKey(member)) {
                content.put(member, read.get(member));
            }
        }
    }

    /** Returns the entry, in the revision that was read or saved last. */
    public Entry entry() {
        return entry;
    }

    /** Returns the attributes, to change: a text each, or a list of texts. */
    public Map<String, Object> attributes() {
        return attributes;
    }

    /** Returns the text. */
    public String text() {
        return Json.text(content, "text", "");
    }

    /** Sets the text. */
    public void text(String text) {
        content.put("text", text);
    }

    /**
     * Saves the change; returns the entry in its new revision.
     *
     * @throws BookException with status 412 if the entry has changed since it was read
     */
    public Entry save() throws IOException, InterruptedException {
        Map<String, Object> all = new LinkedHashMap<>(content);
        all.put("attributes", attributes);
        entry = books.replace(entry, all);
        return entry;
    }

    /** Releases the lock, if it has one. What was not saved is dropped. */
    @Override
    public void close() throws IOException {
        if (!isLocked) {
            return;
        }
        isLocked = false;
        try {
            books.unlock(entry);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new InterruptedIOException("the lock of entry " + entry.id() + " in " + entry.book() + " stays until its time is over");
        }
    }
}
