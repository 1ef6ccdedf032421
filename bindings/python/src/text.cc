// The compiled half of sardonyx.text: tokenizers and chat templates.

#include "text.h"

#include <optional>
#include <sdx/chat_template.hpp>
#include <sdx/tokenizer.hpp>

#include "entry.h"
#include "text_model.h"

namespace sdx::python {
namespace {

std::vector<std::uint32_t> to_ids(PyObject* object) {
  const Object iterator = Object::taken(PyObject_GetIter(object));
  std::vector<std::uint32_t> ids;
  while (PyObject* next = PyIter_Next(iterator.get())) {
    const Object held = Object::taken(next);
    const Object whole = Object::taken(PyNumber_Index(held.get()));
    const unsigned long long id = PyLong_AsUnsignedLongLong(whole.get());
    if (PyErr_Occurred() != nullptr) throw Raised();
    if (id > 0xFFFFFFFFULL) {
      PyErr_Format(PyExc_ValueError, "%llu is too large for a token's number", id);
      throw Raised();
    }
    ids.push_back(static_cast<std::uint32_t>(id));
  }
  if (PyErr_Occurred() != nullptr) throw Raised();
  return ids;
}

Object load(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const std::string path = to_text(argument(arguments, 0));
  return instance_of(unlocked([&] { return Tokenizer::load(path); }));
}

// tokenizer_of(json)
Object tokenizer_of(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 1);
  std::string json = to_text(argument(arguments, 0));
  return instance_of(unlocked([&] { return Tokenizer::from_json(std::move(json)); }));
}

// load_template(path)
Object load_template(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const std::string path = to_text(argument(arguments, 0));
  return instance_of(unlocked([&] { return ChatTemplate::load(path); }));
}

// make_template(source)
Object make_template(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 1);
  return instance_of(ChatTemplate(to_text(argument(arguments, 0))));
}

// render(messages, tools, add_generation_prompt, now, variables): JSON texts
Object render(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 5);
  const ChatTemplate& chat = value_of<ChatTemplate>(self);
  ChatInput input;
  input.messages = to_text(argument(arguments, 0));
  input.tools = to_text(argument(arguments, 1));
  input.add_generation_prompt = to_truth(argument(arguments, 2));
  input.now = to_text(argument(arguments, 3));
  input.variables = to_text(argument(arguments, 4));
  return text(unlocked([&] { return chat.render(input); }));
}

Object range(const TextRange& r) { return tuple(whole(r.begin), whole(r.end)); }

Object encoding_to_python(const Encoding& e) {
  Object dict = new_dict();
  set(dict, "ids", list_of(e.ids, whole<std::uint32_t>));
  set(dict, "tokens", texts(e.tokens));
  set(dict, "offsets", list_of(e.offsets, range));
  set(dict, "type_ids", list_of(e.type_ids, whole<std::uint32_t>));
  set(dict, "attention_mask", list_of(e.attention_mask, whole<std::uint8_t>));
  set(dict, "special_tokens_mask", list_of(e.special_tokens_mask, whole<std::uint8_t>));
  set(dict, "overflowing", list_of(e.overflowing, encoding_to_python));
  return dict;
}

// encode(text, pair or None, add_special_tokens)
Object encode(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 3);
  const Tokenizer& tokenizer = value_of<Tokenizer>(self);
  const std::string first = to_text(argument(arguments, 0));
  PyObject* pair = argument(arguments, 1);
  const bool special = to_truth(argument(arguments, 2));
  const bool alone = pair == Py_None;
  const std::string second = alone ? std::string() : to_text(pair);
  return encoding_to_python(
      unlocked([&] { return alone ? tokenizer.encode(first, special) : tokenizer.encode(first, second, special); }));
}

// encode_batch([([text or words], None or the same, is it words?)], add_special_tokens)
Object encode_batch(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 2);
  const Tokenizer& tokenizer = value_of<Tokenizer>(self);
  const auto inputs = to_list(argument(arguments, 0), [](PyObject* item) {
    expect_arguments(item, 3);
    TextInput input;
    input.text = to_list(argument(item, 0), to_text);
    if (PyObject* pair = argument(item, 1); pair != Py_None) input.pair = to_list(pair, to_text);
    input.words = to_truth(argument(item, 2));
    return input;
  });
  const bool special = to_truth(argument(arguments, 1));
  return list_of(unlocked([&] { return tokenizer.encode_batch(inputs, special); }), encoding_to_python);
}

// A number that stands for none where it is below 0.
std::optional<std::size_t> to_size(PyObject* object) {
  const std::int64_t n = to_integer(object);
  return n < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(n));
}

// with_padding() or with_padding(length or -1, left?, multiple, id, type id, token)
Object with_padding(PyObject* self, PyObject* arguments) {
  const Tokenizer& tokenizer = value_of<Tokenizer>(self);
  if (PyTuple_Size(arguments) == 0) return instance_of(tokenizer.with_padding(std::nullopt));
  expect_arguments(arguments, 6);
  Padding padding;
  padding.fixed_length = to_size(argument(arguments, 0));
  padding.direction = to_truth(argument(arguments, 1)) ? Side::left : Side::right;
  padding.multiple_of = to_size(argument(arguments, 2)).value_or(0);
  padding.id = static_cast<std::uint32_t>(to_integer(argument(arguments, 3)));
  padding.type_id = static_cast<std::uint32_t>(to_integer(argument(arguments, 4)));
  padding.token = to_text(argument(arguments, 5));
  return instance_of(tokenizer.with_padding(padding));
}

// with_truncation() or with_truncation(length, stride, 0 longest first, 1 only first, 2 only second, left?)
Object with_truncation(PyObject* self, PyObject* arguments) {
  const Tokenizer& tokenizer = value_of<Tokenizer>(self);
  if (PyTuple_Size(arguments) == 0) return instance_of(tokenizer.with_truncation(std::nullopt));
  expect_arguments(arguments, 4);
  Truncation truncation;
  truncation.max_length = to_size(argument(arguments, 0)).value_or(0);
  truncation.stride = to_size(argument(arguments, 1)).value_or(0);
  truncation.strategy = static_cast<TruncationStrategy>(to_integer(argument(arguments, 2)));
  truncation.direction = to_truth(argument(arguments, 3)) ? Side::left : Side::right;
  return instance_of(tokenizer.with_truncation(truncation));
}

// with_tokens([(content, single_word, lstrip, rstrip, normalized or None, special)]) -> the tokenizer, and how many are new
Object with_tokens(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const Tokenizer& tokenizer = value_of<Tokenizer>(self);
  const auto tokens = to_list(argument(arguments, 0), [](PyObject* item) {
    expect_arguments(item, 6);
    TokenToAdd token;
    token.content = to_text(argument(item, 0));
    token.single_word = to_truth(argument(item, 1));
    token.lstrip = to_truth(argument(item, 2));
    token.rstrip = to_truth(argument(item, 3));
    if (PyObject* normalized = argument(item, 4); normalized != Py_None) token.normalized = to_truth(normalized);
    token.special = to_truth(argument(item, 5));
    return token;
  });
  std::size_t count = 0;
  Tokenizer made = unlocked([&] { return tokenizer.with_tokens(tokens, &count); });
  return tuple(instance_of(std::move(made)), number(static_cast<std::uint64_t>(count)));
}

// None, or what with_padding() takes, by the names of the package `tokenizers`.
Object padding(PyObject* self, PyObject*) {
  const std::optional<Padding>& p = value_of<Tokenizer>(self).padding();
  if (!p) return Object::none();
  Object dict = new_dict();
  set(dict, "length", p->fixed_length ? whole(*p->fixed_length) : Object::none());
  set(dict, "pad_to_multiple_of", p->multiple_of > 0 ? whole(p->multiple_of) : Object::none());
  set(dict, "pad_id", whole(p->id));
  set(dict, "pad_token", text(p->token));
  set(dict, "pad_type_id", whole(p->type_id));
  set(dict, "direction", text(p->direction == Side::left ? "left" : "right"));
  return dict;
}

Object truncation(PyObject* self, PyObject*) {
  const std::optional<Truncation>& t = value_of<Tokenizer>(self).truncation();
  if (!t) return Object::none();
  constexpr const char* kStrategies[] = {"longest_first", "only_first", "only_second"};
  Object dict = new_dict();
  set(dict, "max_length", whole(t->max_length));
  set(dict, "stride", whole(t->stride));
  set(dict, "strategy", text(kStrategies[static_cast<int>(t->strategy)]));
  set(dict, "direction", text(t->direction == Side::left ? "left" : "right"));
  return dict;
}

Object decode(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 2);
  const Tokenizer& tokenizer = value_of<Tokenizer>(self);
  const std::vector<std::uint32_t> ids = to_ids(argument(arguments, 0));
  const bool skip = to_truth(argument(arguments, 1));
  return text(unlocked([&] { return tokenizer.decode(ids, skip); }));
}

Object token_to_id(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const auto id = value_of<Tokenizer>(self).token_to_id(to_text(argument(arguments, 0)));
  return id ? whole(*id) : Object::none();
}

Object id_to_token(PyObject* self, PyObject* arguments) {
  const std::vector<std::uint32_t> ids = to_ids(arguments);
  const auto token = ids.empty() ? std::nullopt : value_of<Tokenizer>(self).id_to_token(ids[0]);
  return token ? text(*token) : Object::none();
}

Object vocabulary_size(PyObject* self, PyObject*) { return whole(value_of<Tokenizer>(self).vocabulary_size()); }

PyMethodDef methods[] = {
    {"encode", &entry<encode>, METH_VARARGS, "encode($self, text, pair, add_special_tokens, /)\n--\n\n"},
    {"decode", &entry<decode>, METH_VARARGS, "decode($self, ids, skip_special_tokens, /)\n--\n\n"},
    {"token_to_id", &entry<token_to_id>, METH_VARARGS, "token_to_id($self, token, /)\n--\n\n"},
    {"id_to_token", &entry<id_to_token>, METH_VARARGS, "id_to_token($self, id, /)\n--\n\n"},
    {"encode_batch", &entry<encode_batch>, METH_VARARGS, "encode_batch($self, inputs, add_special_tokens, /)\n--\n\n"},
    {"with_padding", &entry<with_padding>, METH_VARARGS, "with_padding($self, /, *settings)\n--\n\n"},
    {"with_truncation", &entry<with_truncation>, METH_VARARGS, "with_truncation($self, /, *settings)\n--\n\n"},
    {"with_tokens", &entry<with_tokens>, METH_VARARGS, "with_tokens($self, tokens, /)\n--\n\n"},
    {"padding", &entry<padding>, METH_NOARGS, "padding($self, /)\n--\n\n"},
    {"truncation", &entry<truncation>, METH_NOARGS, "truncation($self, /)\n--\n\n"},
    {"vocabulary_size", &entry<vocabulary_size>, METH_NOARGS, "vocabulary_size($self, /)\n--\n\n"},
    {nullptr, nullptr, 0, nullptr}};
Object template_source(PyObject* self, PyObject*) { return text(value_of<ChatTemplate>(self).source()); }

PyMethodDef template_methods[] = {
    {"source", &entry<template_source>, METH_NOARGS, "source($self, /)\n--\n\n"},
    {"render", &entry<render>, METH_VARARGS, "render($self, messages, tools, add_generation_prompt, now, variables, /)\n--\n\n"},
    {nullptr, nullptr, 0, nullptr}};
PyMethodDef functions[] = {{"load_tokenizer", &entry<load>, METH_VARARGS, "load_tokenizer($module, path, /)\n--\n\n"},
                           {"tokenizer_of", &entry<tokenizer_of>, METH_VARARGS, "tokenizer_of($module, json, /)\n--\n\n"},
                           {"load_template", &entry<load_template>, METH_VARARGS, "load_template($module, path, /)\n--\n\n"},
                           {"make_template", &entry<make_template>, METH_VARARGS, "make_template($module, source, /)\n--\n\n"},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

Object make_text(PyObject*, PyObject*) {
  Object module = new_module<functions>("sardonyx._sardonyx.text");
  add_class<Tokenizer>(module, "Tokenizer", "sardonyx._sardonyx.Tokenizer", methods);
  add_class<ChatTemplate>(module, "ChatTemplate", "sardonyx._sardonyx.ChatTemplate", template_methods);
  add_text_models(module);
  return module;
}

}  // namespace sdx::python
