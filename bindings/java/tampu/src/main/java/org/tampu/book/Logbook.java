package org.tampu.book;

import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.tampu.gateway.Trust;
import org.tampu.internal.json.Json;

/**
 * The logbooks of a hub, by its REST API.
 *
 * <pre>{@code
 * Logbook books = new Logbook(URI.create("http://127.0.0.1:7449"), token);
 * Entry entry = books.post("Shift log", Map.of("Author", "Zoe", "Type", "Problem"), "**DV05**: LO1 lost its lock.");
 * books.attach(entry, Path.of("trip.png"));
 * }</pre>
 */
public final class Logbook {
    private final HttpClient client;
    private static final Map<String, String> JSON = Map.of("Content-Type", "application/json");
    private final String base;
    private final String token;

    /** An entry of a logbook: its place and its revision. */
    public record Entry(String book, long id, long revision) {}

    /**
     * Makes a client.
     *
     * @param hub address of the logbook's server
     * @param token a token of {@code tampu book users token make}, or null for what guests may do
     */
    public Logbook(URI hub, String token) {
        this(hub, token, HttpClient.newBuilder());
    }

    /**
     * Makes a client of a hub whose certificate the domain's own authority has signed.
     *
     * @param certificates a file of further certificates to trust, or the directory with the domain's {@code authority.crt}
     */
    public Logbook(URI hub, String token, Path certificates) throws IOException {
        this(hub, token, HttpClient.newBuilder().sslContext(Trust.certificates(certificates)));
    }

    private Logbook(URI hub, String token, HttpClient.Builder client) {
        this.client = client.connectTimeout(Duration.ofSeconds(10)).build();
        this.base = hub.toString().replaceAll("/+$", "") + "/api/v1";
        this.token = token;
    }

    /** Posts an entry with a text in Markdown. It is durable and in every search when the call returns. */
    public Entry post(String book, Map<String, String> attributes, String text) throws IOException, InterruptedException {
        return post(book, attributes, text, Map.of());
    }

    /** Posts an entry; {@code more} has further members of the API's NewEntry, as {@code parent} or {@code encoding}. */
    public Entry post(String book, Map<String, String> attributes, String text, Map<String, Object> more)
            throws IOException, InterruptedException {
        Map<String, Object> body = new LinkedHashMap<>(more);
        body.put("attributes", attributes);
        body.put("text", text);
        return revised(book, send("POST", entries(book), json(body), JSON));
    }

    /** Posts a reply to an entry. */
    public Entry reply(Entry to, Map<String, String> attributes, String text) throws IOException, InterruptedException {
        return post(to.book, attributes, text, Map.of("parent", to.id));
    }

    /**
     * Returns the content of an entry to change, without a lock. {@link Draft#save} fails with status 412 if the entry has
     * changed meanwhile.
     */
    public Draft draft(String book, long id) throws IOException, InterruptedException {
        return new Draft(this, read(book, id), false);
    }

    /**
     * Locks an entry for at most this time, and returns its content to change; closing the draft releases the lock.
     *
     * @throws BookException with status 423 if another user has locked it
     */
    public Draft lock(String book, long id, Duration time) throws IOException, InterruptedException {
        Entry entry = new Entry(book, id, 0);
        send("PUT", place(entry) + "/lock", json(Map.of("seconds", Math.max(1, time.toSeconds()))), JSON);
        try {
            return new Draft(this, read(book, id), true);
        } catch (IOException | InterruptedException | RuntimeException failed) {
            unlock(entry);
            throw failed;
        }
    }

    /** Returns the lock of an entry: {@code by}, {@code host}, {@code since}, {@code until}; empty without one. */
    public Map<String, Object> locked(String book, long id) throws IOException, InterruptedException {
        String body = send("GET", entries(book) + "/" + id + "/lock", HttpRequest.BodyPublishers.noBody(), Map.of()).body();
        return body.strip().equals("null") ? Map.of() : Json.object(body);
    }

    void unlock(Entry entry) throws IOException, InterruptedException {
        send("DELETE", place(entry) + "/lock", HttpRequest.BodyPublishers.noBody(), Map.of());
    }

    /** Replaces the whole content of an entry, if it has not changed since its revision. */
    Entry replace(Entry entry, Map<String, Object> content) throws IOException, InterruptedException {
        return revised(entry.book, send("PUT", place(entry), json(content),
                Map.of("Content-Type", "application/json", "If-Match", "\"" + entry.revision + "\"")));
    }

    /**
     * Replaces the attributes and the text of an entry, in Markdown, if it has not changed since the revision of {@code
     * entry}. Its files and links go; {@link #draft} keeps them.
     */
    public Entry edit(Entry entry, Map<String, String> attributes, String text) throws IOException, InterruptedException {
        Map<String, Object> body = new LinkedHashMap<>();
        body.put("attributes", attributes);
        body.put("text", text);
        return replace(entry, body);
    }

    /** Returns an entry with all its members, as the API has it. */
    public Map<String, Object> read(String book, long id) throws IOException, InterruptedException {
        return Json.object(send("GET", entries(book) + "/" + id, HttpRequest.BodyPublishers.noBody(), Map.of()).body());
    }

    /** Adds a file to an entry. */
    public Entry attach(Entry entry, Path file) throws IOException, InterruptedException {
        String name = encode(file.getFileName().toString());
        return revised(entry.book, send("POST", place(entry) + "/attachments?name=" + name, HttpRequest.BodyPublishers.ofFile(file),
                Map.of("Content-Type", "application/octet-stream", "If-Match", "\"" + entry.revision + "\"")));
    }

    /** Writes a file of an entry, by its place from 0, to a path. */
    public void fetch(String book, long id, int number, Path to) throws IOException, InterruptedException {
        HttpRequest request = request("GET", entries(book) + "/" + id + "/attachments/" + number,
                HttpRequest.BodyPublishers.noBody(), Map.of());
        HttpResponse<Path> response = client.send(request, info -> info.statusCode() == 200
                ? HttpResponse.BodySubscribers.ofFile(to) : HttpResponse.BodySubscribers.replacing(null));
        if (response.statusCode() != 200) {
            throw new BookException(response.statusCode(), "file " + number + " of entry " + id + " in " + book + ": status "
                    + response.statusCode());
        }
    }

    /** Returns the entries of a thread. */
    public List<Map<String, Object>> thread(String book, long id) throws IOException, InterruptedException {
        return pages(entries(book) + "/" + id + "/thread?", "entries", Integer.MAX_VALUE);
    }

    /** Returns the hits of a query in the search language of the logbook, at most so many. */
    public List<Map<String, Object>> search(String query, int limit) throws IOException, InterruptedException {
        return pages("/search?q=" + encode(query) + "&limit=" + Math.min(limit, 100), "hits", limit);
    }

    private List<Map<String, Object>> pages(String path, String member, int limit) throws IOException, InterruptedException {
        List<Map<String, Object>> found = new ArrayList<>();
        String after = null;
        do {
            String from = after == null ? "" : "&after=" + encode(after);
            Map<String, Object> page = Json.object(
                    send("GET", path + from, HttpRequest.BodyPublishers.noBody(), Map.of()).body());
            if (page.get(member) instanceof List<?> all) {
                for (Object each : all) {
                    if (found.size() < limit && each instanceof Map<?, ?> map) {
                        @SuppressWarnings("unchecked")
                        Map<String, Object> entry = (Map<String, Object>) map;
                        found.add(entry);
                    }
                }
            }
            after = Json.text(page, "next", null);
        } while (after != null && found.size() < limit);
        return found;
    }

    private static Entry revised(String book, HttpResponse<String> response) {
        Map<String, Object> body = Json.object(response.body());
        return new Entry(book, Json.number(body, "id", 0), Json.number(body, "revision", 0));
    }

    private static String entries(String book) {
        return "/books/" + encode(book) + "/entries";
    }

    private static String place(Entry entry) {
        return entries(entry.book) + "/" + entry.id;
    }

    private static String encode(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
    }

    private static HttpRequest.BodyPublisher json(Map<String, Object> body) {
        return HttpRequest.BodyPublishers.ofString(Json.write(body));
    }

    private HttpRequest request(String method, String path, HttpRequest.BodyPublisher body, Map<String, String> headers) {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(base + path)).timeout(Duration.ofSeconds(60));
        headers.forEach(request::header);
        if (token != null) {
            request.header("Authorization", "Bearer " + token);
        }
        return request.method(method, body).build();
    }

    private HttpResponse<String> send(String method, String path, HttpRequest.BodyPublisher body, Map<String, String> headers)
            throws IOException, InterruptedException {
        HttpResponse<String> response = client.send(request(method, path, body, headers), HttpResponse.BodyHandlers.ofString());
        if (response.statusCode() / 100 != 2) {
            throw new BookException(response.statusCode(), method + " " + path + ": " + problem(response));
        }
        return response;
    }

    private static String problem(HttpResponse<String> response) {
        try {
            Map<String, Object> problem = Json.object(response.body());
            return Json.text(problem, "detail", Json.text(problem, "title", "status " + response.statusCode()));
        } catch (IllegalArgumentException none) {
            return "status " + response.statusCode();
        }
    }
}
