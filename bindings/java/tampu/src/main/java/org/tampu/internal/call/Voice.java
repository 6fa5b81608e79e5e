package org.tampu.internal.call;

import java.nio.charset.StandardCharsets;
import java.util.List;

/** The fields that a logger adds to its records. In the dictionary they stand as JSON ({@code spec/log-call.md}). */
public record Voice(
        String logger, String sourceObject, String context, List<String> audiences, String array, String antenna, String runId) {
    /** Makes the fields of a logger that has nothing but a name. */
    public Voice(String logger) {
        this(logger, "", "", List.of(), "", "", "");
    }

    /** Returns the same fields under another name. */
    public Voice named(String other) {
        return new Voice(other, sourceObject, context, audiences, array, antenna, runId);
    }

    /** Returns the same fields for another component. */
    public Voice withSourceObject(String other) {
        return new Voice(logger, other, context, audiences, array, antenna, runId);
    }

    /** Returns the same fields in another context. */
    public Voice withContext(String other) {
        return new Voice(logger, sourceObject, other, audiences, array, antenna, runId);
    }

    /** Returns the same fields for other audiences. */
    public Voice withAudiences(List<String> other) {
        return new Voice(logger, sourceObject, context, List.copyOf(other), array, antenna, runId);
    }

    /** Returns the same fields for another array. */
    public Voice withArray(String other) {
        return new Voice(logger, sourceObject, context, audiences, other, antenna, runId);
    }

    /** Returns the same fields for another antenna. */
    public Voice withAntenna(String other) {
        return new Voice(logger, sourceObject, context, audiences, array, other, runId);
    }

    /** Returns the same fields for another run. */
    public Voice withRunId(String other) {
        return new Voice(logger, sourceObject, context, audiences, array, antenna, other);
    }

    byte[] encode() {
        StringBuilder json = new StringBuilder("{\"logger\":");
        quote(json, logger);
        member(json, "source_object", sourceObject);
        member(json, "context", context);
        if (!audiences.isEmpty()) {
            json.append(",\"audiences\":[");
            for (int at = 0; at < audiences.size(); at++) {
                json.append(at == 0 ? "" : ",");
                quote(json, audiences.get(at));
            }
            json.append(']');
        }
        member(json, "array", array);
        member(json, "antenna", antenna);
        member(json, "run_id", runId);
        return json.append('}').toString().getBytes(StandardCharsets.UTF_8);
    }

    private static void member(StringBuilder json, String name, String value) {
        if (!value.isEmpty()) {
            json.append(",\"").append(name).append("\":");
            quote(json, value);
        }
    }

    private static void quote(StringBuilder json, String text) {
        json.append('"');
        for (int at = 0; at < text.length(); at++) {
            char character = text.charAt(at);
            if (character == '"' || character == '\\') {
                json.append('\\').append(character);
            } else if (character < ' ') {
                json.append(String.format("\\u%04x", (int) character));
            } else {
                json.append(character);
            }
        }
        json.append('"');
    }
}
