/* quotes.h - purpose: JSON in tests with 'single quotes', so that it can be read. */
#pragma once
#include "common/wire/json.h"

#include <check.h>

/* A new tree of the text. */
static inline UNUSED json_t *quoted(const char *text)
{
	_cleanup_free_ char *json = xstrdup(text);
	struct error err = ERROR_INIT;
	json_t *tree = NULL;

	for (char *p = json; *p; p++)
		if (*p == '\'')
			*p = '"';
	ck_assert_msg(json_read(json, strlen(json), true, &tree, &err) == 0, "%s: %s", text, err.text);
	return tree;
}

#define assert_json_eq(tree, text)                                                                                     \
	do {                                                                                                           \
		_cleanup_json_ json_t *want_ = quoted(text);                                                           \
		_cleanup_free_ char *got_text_ = json_canonical(tree), *want_text_ = json_canonical(want_);            \
		ck_assert_str_eq(got_text_, want_text_);                                                               \
	} while (0)

static inline UNUSED int run_case(TCase *t)
{
	Suite *s = suite_create("suite");

	suite_add_tcase(s, t);
	SRunner *runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed != 0;
}
