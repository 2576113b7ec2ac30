/* prom.c - purpose: counters, gauges and histograms, and their text for Prometheus. */
#include "common/wire/prom.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

struct series {
	double value; /* of a histogram: the sum */
	uint64_t count;
	uint64_t buckets[]; /* not cumulative; n_bounds of them, what lies above is in none */
};

static size_t n_labels(const struct prom_metric *m)
{
	size_t n = 0;

	while (n < PROM_LABELS_MAX && m->labels[n])
		n++;
	return n;
}

static void add_escaped(struct str *out, const char *text, bool quotes)
{
	for (; *text; text++) {
		if (*text == '\n')
			str_add(out, "\\n");
		else if (*text == '\\' || (*text == '"' && quotes))
			str_addf(out, "\\%c", *text);
		else
			str_add_char(out, *text);
	}
}

/* a="x",b="y": also the key under which a series is found. */
static char *key_of(const struct prom_metric *m, va_list args)
{
	struct str key = STR_INIT;

	for (size_t i = 0; i < n_labels(m); i++) {
		const char *value = va_arg(args, const char *);

		str_addf(&key, "%s%s=\"", i ? "," : "", m->labels[i]);
		add_escaped(&key, value ? value : "", true);
		str_add_char(&key, '"');
	}
	return str_take(&key);
}

static struct series *series_of(struct prom_metric *m, va_list args)
{
	_cleanup_free_ char *key = key_of(m, args);
	struct series *series = map_get(&m->series, key);

	if (series || m->series.count >= PROM_SERIES_MAX)
		return series;
	series = xcalloc(1, sizeof(*series) + m->n_bounds * sizeof(series->buckets[0]));
	map_put(&m->series, key, series);
	return series;
}

void prom_add(struct prom_metric *m, double value, ...)
{
	va_list args;

	va_start(args, value);
	struct series *series = series_of(m, args);
	va_end(args);
	if (series)
		series->value += value;
}

void prom_set(struct prom_metric *m, double value, ...)
{
	va_list args;

	va_start(args, value);
	struct series *series = series_of(m, args);
	va_end(args);
	if (series)
		series->value = value;
}

void prom_observe(struct prom_metric *m, double value, ...)
{
	va_list args;
	size_t i = 0;

	assert(m->type == PROM_TYPE_HISTOGRAM);
	va_start(args, value);
	struct series *series = series_of(m, args);
	va_end(args);
	if (!series)
		return;
	series->value += value;
	series->count++;
	while (i < m->n_bounds && value > m->bounds[i])
		i++;
	if (i < m->n_bounds)
		series->buckets[i]++;
}

void prom_reset(struct prom_metric *m)
{
	map_done_values(&m->series, free);
	m->series = MAP_INIT;
}

static void add_number(struct str *out, double v)
{
	char buf[40];

	if (isnan(v) || isinf(v)) {
		str_add(out, isnan(v) ? "NaN" : v > 0 ? "+Inf" : "-Inf");
		return;
	}
	for (int precision = 1; precision <= 17; precision++) {
		snprintf(buf, sizeof(buf), "%.*g", precision, v);
		if (strtod(buf, NULL) == v)
			break;
	}
	str_add(out, buf);
}

static void add_sample(
	struct str *out, const struct prom_metric *m, const char *suffix, const char *labels, const char *le, double v)
{
	str_addf(out, "%s%s", m->name, suffix);
	if (*labels || le)
		str_addf(out, "{%s%s%s%s%s}", labels, *labels && le ? "," : "", le ? "le=\"" : "", le ? le : "",
			le ? "\"" : "");
	str_add_char(out, ' ');
	add_number(out, v);
	str_add_char(out, '\n');
}

static void write_series(struct str *out, const struct prom_metric *m, const char *labels, const struct series *series)
{
	uint64_t seen = 0;

	if (m->type != PROM_TYPE_HISTOGRAM) {
		add_sample(out, m, "", labels, NULL, series->value);
		return;
	}
	for (size_t i = 0; i < m->n_bounds; i++) {
		_cleanup_(str_done) struct str le = STR_INIT;

		add_number(&le, m->bounds[i]);
		seen += series->buckets[i];
		add_sample(out, m, "_bucket", labels, str_get(&le), (double)seen);
	}
	add_sample(out, m, "_bucket", labels, "+Inf", (double)series->count);
	add_sample(out, m, "_sum", labels, NULL, series->value);
	add_sample(out, m, "_count", labels, NULL, (double)series->count);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void prom_write(struct str *out, const struct prom_metric *m)
{
	static const char *const types[] = { "counter", "gauge", "histogram" };
	_cleanup_free_ const char **keys = xcalloc(m->series.count, sizeof(*keys));
	struct map_iter it = MAP_ITER_INIT;
	size_t n = 0;

	str_addf(out, "# HELP %s ", m->name);
	add_escaped(out, m->help, false);
	str_addf(out, "\n# TYPE %s %s\n", m->name, types[m->type]);
	while (map_next(&m->series, &it))
		keys[n++] = it.key;
	qsort(keys, n, sizeof(*keys), compare);
	for (size_t i = 0; i < n; i++)
		write_series(out, m, keys[i], map_get(&m->series, keys[i]));
	if (!n && !n_labels(m) && m->type != PROM_TYPE_HISTOGRAM)
		add_sample(out, m, "", "", NULL, 0);
}
